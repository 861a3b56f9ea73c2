import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Config, parseConfig } from '@transitd/configuration';
import { StoreError } from '@transitd/storage-fsm';
import { pino } from 'pino';
import { freePort } from '../../../test/cluster/harness/free-port.ts';
import { until } from '../../process/test/until.ts';
import { Node } from '../src/node.ts';

export const stateOf = ({ status }: Node): string => status.state;

/** Nodes in this process, each with a data directory of its own in one folder. */
export class OpenedNodes {
  readonly folder = mkdtempSync(join(tmpdir(), 'transitd-nodes-'));
  readonly #nodes: Node[] = [];
  #opened = 0;

  constructor() {
    writeFileSync(join(this.folder, 'key'), Buffer.alloc(32, 1), { mode: 0o600 });
  }

  /** A seal whose key all nodes have. */
  get staticSeal(): object {
    return { type: 'static', key_id: 'one', key_file: join(this.folder, 'key') };
  }

  /** Returns the configuration of a new node, or of one with this data directory. */
  async config(storage: object, seal: object = this.staticSeal, data_dir?: string): Promise<Config> {
    return parseConfig(await this.settings(storage, seal, data_dir));
  }

  /** Returns the same as the content of a configuration file. */
  async settings(storage: object, seal: object = this.staticSeal, data_dir?: string): Promise<object> {
    this.#opened += 1;
    return {
      node_id: `n${this.#opened}`,
      data_dir: data_dir ?? join(this.folder, `data-${this.#opened}`),
      cluster_addr: `127.0.0.1:${await freePort('127.0.0.1')}`,
      api_addr: `http://127.0.0.1:${await freePort('127.0.0.1')}`,
      cluster_heartbeat_interval: '200ms',
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
      seal,
      storage,
    };
  }

  async open(config: Config, onFatal: (error: Error) => void = thrown): Promise<Node> {
    const node = await Node.open({ config, log: pino({ level: 'silent' }), onFatal });
    this.#nodes.push(node);
    return node;
  }

  /** Returns the active node of a new cluster with the static seal. */
  async started(config: Config): Promise<Node> {
    const node = await this.open(config);
    // Without an answer of etcd it is not known whether the node is initialized. The static seal unseals it without the lost shares.
    while (!node.initialized)
      await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 }).catch((error: unknown) => {
        if (!isStall(error)) throw error;
      });
    await until(() => stateOf(node) === 'active');
    return node;
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.#nodes.splice(0).map((node) => node.stop()));
  }

  async end(): Promise<void> {
    await this.stopAll();
    rmSync(this.folder, { recursive: true });
  }
}

/** Whether the write failed because etcd did not answer in time, or because the active role moved. */
const isStall = (error: unknown): boolean =>
  error instanceof StoreError && ['not_leader', 'outcome_unknown'].includes(error.code);

const thrown = (error: Error): never => {
  throw error;
};

/** Writes a record behind the barrier, on the active one of these nodes. */
export async function write(nodes: Node | readonly Node[], value: string, name = 'record'): Promise<void> {
  const writes = [{ path: `test/${name}`, value: Buffer.from(value) }];
  await onActive([nodes].flat(), async ({ member }) => member?.barrier.store.commit({ conditions: [], writes }));
}

/** Runs a task on the active one of these nodes. Repeats that when a process was not scheduled for seconds. */
export async function onActive<T>(nodes: readonly Node[], task: (active: Node) => Promise<T>): Promise<T> {
  for (;;) {
    const active = await activeOf(nodes);
    try {
      return await task(active);
    } catch (error) {
      if (!isStall(error)) throw error;
    }
  }
}

/** Waits until one of these nodes is active. */
export async function activeOf(nodes: readonly Node[]): Promise<Node> {
  let active: Node | undefined;
  await until(() => {
    active = nodes.find((node) => stateOf(node) === 'active');
    return active !== undefined;
  });
  return active as unknown as Node;
}

/** Reads that record; undefined also while the node is sealed. */
export async function read({ member }: Node): Promise<string | undefined> {
  const record = await member?.barrier.store.get('test/record').catch(() => undefined);
  return record && Buffer.from(record.value).toString();
}

/** Waits until the node reads this value. */
export async function reads(node: Node, value: string): Promise<void> {
  let seen: string | undefined;
  await until(() => {
    void read(node).then((now) => {
      seen = now;
    });
    return seen === value;
  });
}

export const errorOf = (outcome: Promise<unknown>): Promise<unknown> =>
  outcome.then(
    () => undefined,
    (error: unknown) => error,
  );
