import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import {
  type Changes,
  type Command,
  type CommitResult,
  type PathPage,
  type RangePage,
  type RangeQuery,
  type Replica,
  type ReplicaStatus,
  type StoredRecord,
  StoreError,
  Watchers,
} from '@transitd/storage-fsm';
import { ChangeReader } from '../coherence/change-reader.ts';
import type { ChangeNumber, ReplyMessage } from '../coherence/messages.ts';
import { drainedWord, type NodeMemory, word } from '../shared/node-memory.ts';
import { SharedStatus } from '../shared/shared-status.ts';
import { type ReplicaCall, type ReplicaRequest, transactionToSend } from './requests.ts';

interface ReplicaProxyOptions {
  /** The gateway's end of the channel to the main thread. */
  readonly port: MessagePort;
  readonly memory: NodeMemory;
  /** This gateway's row in the shared memory. */
  readonly row: number;
  /** @see ReplicaHost.start */
  readonly start: ChangeNumber;
  readonly clusterId: string;
}

interface OpenCall {
  readonly kind: ReplicaCall['kind'];
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The replica in a gateway's thread. It asks the main thread for records and commits, and reports the applied changes to its watchers.
 *
 * Two differences from the replica in the main thread, both for its callers:
 *
 * - The watchers learn of a change when the gateway drains or when its event loop takes the message. A request calls {@link drain} when it
 *   begins and after every wait, before it uses anything that a watcher keeps.
 * - A change may be reported after a read has resolved and before the code behind its `await` runs. So a cache must not keep what it has
 *   read if its record has changed since the read began.
 */
export class ReplicaProxy implements Replica {
  readonly #port: MessagePort;
  readonly #clusterId: string;
  readonly #status: SharedStatus;
  readonly #reader: ChangeReader;
  readonly #watchers = new Watchers();
  readonly #calls = new Map<number, OpenCall>();
  #lastId = 0;
  #isClosed = false;

  constructor({ port, memory, row, start, clusterId }: ReplicaProxyOptions) {
    this.#port = port;
    this.#clusterId = clusterId;
    this.#status = new SharedStatus(memory);
    this.#reader = new ChangeReader({
      start,
      counter: () => Atomics.load(memory.words, word.changes),
      receive: () => receiveMessageOnPort(port)?.message,
      onChanges: (changes) => this.#watchers.notify(changes),
      onReply: (reply) => this.#settle(reply),
      onDrained: (number) => void Atomics.store(memory.words, drainedWord(row), number),
    });
    Atomics.store(memory.words, drainedWord(row), start); // a previous proxy of this row may have published later
    port.on('message', (message) => this.#reader.take(message));
    port.once('close', () => this.#refuseAll());
  }

  /**
   * Reports every change to the watchers that was published before this call. A caller of another thread or node may have been told of
   * these changes, so nothing older may be used after this call.
   */
  drain(): void {
    this.#reader.drain();
  }

  async get(path: string): Promise<StoredRecord | undefined> {
    return (await this.#call({ kind: 'get', path })) as StoredRecord | undefined;
  }

  async range(query: RangeQuery): Promise<RangePage> {
    return (await this.#call({ kind: 'range', query })) as RangePage;
  }

  async paths(query: RangeQuery): Promise<PathPage> {
    return (await this.#call({ kind: 'paths', query })) as PathPage;
  }

  async commit(command: Command): Promise<CommitResult> {
    return (await this.#call({ kind: 'commit', transaction: transactionToSend(command) })) as CommitResult;
  }

  async fresh(): Promise<void> {
    await this.#call({ kind: 'fresh' });
  }

  watch(prefix: string, listener: (changes: Changes) => void): () => void {
    return this.#watchers.add(prefix, listener);
  }

  /** The status may be newer than what the watchers know; they know it after a {@link drain}. */
  status(): ReplicaStatus {
    return { clusterId: this.#clusterId, ...this.#status.read() };
  }

  /** Refuses open and later calls, and ends the connection to the main thread. */
  close(): void {
    this.#refuseAll();
    this.#port.close();
  }

  #call(call: ReplicaCall): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(stopped());
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#port.postMessage({ id, ...call } satisfies ReplicaRequest);
      this.#calls.set(id, { kind: call.kind, resolve, reject });
    });
  }

  #settle({ id, result }: ReplyMessage): void {
    const call = this.#calls.get(id);
    if (call === undefined) return; // `close` has refused this call in the meantime
    this.#calls.delete(id);
    if (result.kind === 'value') call.resolve(result.value);
    else if (result.kind === 'refused') call.reject(new StoreError(result.code, result.message));
    else call.reject(result.error);
  }

  #refuseAll(): void {
    this.#isClosed = true;
    for (const { kind, reject } of this.#calls.values()) reject(kind === 'commit' ? unknownOutcome() : stopped());
    this.#calls.clear();
  }
}

const stopped = (): StoreError => new StoreError('stopped', 'this gateway is stopping');
const unknownOutcome = (): StoreError =>
  new StoreError('outcome_unknown', 'this gateway is stopping, and the entry may still commit');
