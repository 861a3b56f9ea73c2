import type { MessagePort } from 'node:worker_threads';
import { type Replica, StoreError } from '@transitd/storage-fsm';
import { GatewayLag } from '../coherence/gateway-lag.ts';
import type { ChangeNumber, GatewayMessage, ReplyResult } from '../coherence/messages.ts';
import { drainedWord, type NodeMemory } from '../shared/node-memory.ts';
import type { ChangeFeed } from './change-feed.ts';
import { pageToSend, type ReplicaRequest, recordToSend } from './requests.ts';

/** How long a gateway may take to drain a change before it has to be replaced, in milliseconds. */
const lagMsMax = 1000;

interface ReplicaHostOptions {
  readonly replica: Replica;
  readonly feed: ChangeFeed;
  readonly memory: NodeMemory;
  /** The main thread's end of the channel to the gateway. */
  readonly port: MessagePort;
  /** The gateway's row in the shared memory. */
  readonly row: number;
}

/** The main thread's end of one gateway: posts the changes to it, and answers its requests from the replica. */
export class ReplicaHost {
  /** Number of the newest change when the gateway was added; the gateway's proxy needs it. */
  readonly start: ChangeNumber;
  readonly #options: ReplicaHostOptions;
  readonly #lag = new GatewayLag(lagMsMax);
  readonly #remove: () => void;
  #isClosed = false;

  constructor(options: ReplicaHostOptions) {
    const { feed, port } = options;
    this.#options = options;
    this.start = feed.publisher.number;
    Atomics.store(options.memory.words, drainedWord(options.row), this.start); // the row may have belonged to a gateway that died
    this.#remove = feed.publisher.add({ post: (message) => this.#post(message), drained: () => this.#drained });
    port.on('message', (request: ReplicaRequest) => void this.#answer(request));
  }

  /** Returns whether the gateway has lagged for more than a second, and has to be replaced. @param nowMs - on a monotonic clock */
  lagsTooLong(nowMs: number): boolean {
    return this.#lag.isTooLong({ published: this.#options.feed.publisher.number, drained: this.#drained, nowMs });
  }

  /** Posts and answers nothing from now on. Requests of the gateway that wait for an answer are refused in its thread. */
  close(): void {
    this.#isClosed = true;
    this.#remove();
    this.#options.port.close();
  }

  get #drained(): ChangeNumber {
    return Atomics.load(this.#options.memory.words, drainedWord(this.#options.row));
  }

  async #answer(request: ReplicaRequest): Promise<void> {
    const result = await this.#resultOf(request);
    const { feed } = this.#options;
    feed.publishStatus(); // an entry without changes moves the applied index too
    this.#post({ kind: 'reply', number: feed.publisher.number, id: request.id, result });
  }

  async #resultOf(request: ReplicaRequest): Promise<ReplyResult> {
    try {
      return { kind: 'value', value: await this.#execute(request) };
    } catch (error) {
      if (error instanceof StoreError) return { kind: 'refused', code: error.code, message: error.message };
      return { kind: 'failed', error: error instanceof Error ? error : new Error(String(error)) };
    }
  }

  async #execute(request: ReplicaRequest): Promise<unknown> {
    const { replica } = this.#options;
    switch (request.kind) {
      case 'get':
        return recordToSend(await replica.get(request.path));
      case 'range':
        return pageToSend(await replica.range(request.query));
      case 'paths':
        return replica.paths(request.query);
      case 'commit':
        return replica.commit(request.transaction);
      case 'fresh':
        return replica.fresh();
    }
  }

  #post(message: GatewayMessage): void {
    if (!this.#isClosed) this.#options.port.postMessage(message);
  }
}
