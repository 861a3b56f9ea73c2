import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Entry } from '@transitd/raft-core';
import { type Command, encodeCommand, type FeatureLevel, KeyValueMachine, type ReplicationStep } from '@transitd/storage-fsm';
import { localPrefixes } from '../../src/scope.ts';
import type { PrimaryCluster, SecondaryCluster } from '../../src/sessions/session-ports.ts';
import { snapshotToSend } from '../../src/sessions/state-frames.ts';
import type { PrimaryNodes } from '../../src/stream/frame.ts';
import { OutcomeLog } from '../../src/stream/outcome-log.ts';

const set = '01'.repeat(16);
const mebibyte = 2 ** 20;
/** Applied writes that may wait for a flush. */
const pendingBytesMax = 32 * mebibyte;

/** A cluster of one node without consensus: the real state machine, and a file to which each entry is synced before it is applied. */
export class MachineCluster implements PrimaryCluster, SecondaryCluster {
  readonly machine: KeyValueMachine;
  readonly wantsWholeState = false;
  readonly outcomes = new OutcomeLog({ bytesMax: 1024 * mebibyte, heldBytesMax: 2048 * mebibyte });
  readonly #log: FileHandle;
  #index = 0;
  #attempts = 0;

  private constructor(machine: KeyValueMachine, log: FileHandle) {
    this.machine = machine;
    this.#log = log;
    machine.observe(this.outcomes);
  }

  static async open(folder: string, name: string, first: 'establish' | 'attach'): Promise<MachineCluster> {
    const machine = await KeyValueMachine.open({ directory: join(folder, name), base: 0 });
    const cluster = new MachineCluster(machine, await open(join(folder, `${name}.log`), 'w'));
    const step: ReplicationStep =
      first === 'establish'
        ? { kind: first, set, id: '0a'.repeat(16), local: localPrefixes }
        : { kind: first, set, local: localPrefixes };
    await cluster.commit({ replication: step });
    return cluster;
  }

  /** Syncs an entry to the log, and applies it. */
  async commit(command: Command): Promise<'committed' | 'conflict'> {
    const data = encodeCommand(command);
    await this.#log.write(data);
    await this.#log.datasync();
    this.#index += 1;
    const entry: Entry = { term: 1, index: this.#index, type: 'normal', data };
    const { outcome } = this.machine.apply(entry);
    this.machine.publish();
    if (this.machine.pendingBytes > pendingBytesMax) await this.flush();
    return outcome;
  }

  flush(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.machine.flush((error) => (error === undefined ? resolve() : reject(error)));
    });
  }

  async close(): Promise<void> {
    await this.machine.close();
    await this.#log.close();
  }

  level(): FeatureLevel {
    return this.machine.featureLevel;
  }

  state() {
    return this.machine.replication;
  }

  position(): number {
    const state = this.machine.replication;
    return state?.role === 'primary' ? this.#index + state.offset : (state?.index ?? 0);
  }

  digest(): undefined {
    return undefined;
  }

  wholeState() {
    return snapshotToSend(this.machine);
  }

  newAttempt(): string {
    this.#attempts += 1;
    return `attempt-${this.#attempts}`;
  }

  rootKey(): Promise<Uint8Array> {
    return Promise.resolve(Buffer.alloc(32));
  }

  propose(step: ReplicationStep): Promise<'committed' | 'conflict'> {
    return this.commit({ replication: step });
  }

  mayAnswer(): boolean {
    return true;
  }

  answered(): void {}
  acknowledged(): void {}

  counted(): void {}

  receiving(): void {}

  heard(): void {}

  readonly successionKey = undefined;

  unproven(): void {
    throw new Error('no cluster of this test claims an epoch');
  }

  superseded(): Promise<void> {
    return Promise.reject(new Error('there is one primary'));
  }

  nodes: (nodes?: PrimaryNodes) => PrimaryNodes = () => ({ addresses: [], authorities: [] });
}
