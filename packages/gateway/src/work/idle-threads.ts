import type { MessagePort } from 'node:worker_threads';
import { OwnLoad } from './own-load.ts';

/** How long a thread that was busy is not asked again, in milliseconds. */
const busyMs = 50;

type Message<Task, Result> =
  | { readonly kind: 'task'; readonly task: Task }
  | { readonly kind: 'busy' }
  /** `result` is undefined if the thread could not do the task. */
  | { readonly kind: 'done'; readonly result: Result | undefined };

/** Another thread. It has one task of this thread at a time. */
class Peer<Task, Result> {
  readonly #port: MessagePort;
  #answer: ((result: Result | undefined) => void) | undefined;
  #busyUntilMs = Number.NEGATIVE_INFINITY;

  constructor(port: MessagePort) {
    this.#port = port;
  }

  get isIdle(): boolean {
    return this.#answer === undefined && performance.now() >= this.#busyUntilMs;
  }

  /** Resolves with undefined if the thread does not do the task. Never rejects. */
  run(task: Task): Promise<Result | undefined> {
    if (this.#answer !== undefined) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.#port.postMessage({ kind: 'task', task } satisfies Message<Task, Result>);
    });
  }

  answered(result: Result | undefined, { isBusy }: { readonly isBusy: boolean }): void {
    if (isBusy) this.#busyUntilMs = performance.now() + busyMs;
    this.#answer?.(result);
    this.#answer = undefined;
  }
}

/**
 * One thread's view of the other threads of the process, with which it shares long work. A thread that is busy with its own work or with
 * the task of another thread refuses tasks, so under load each thread does its own work, and nothing is gained or lost.
 */
export class IdleThreads<Task, Result> {
  readonly #run: (task: Task) => Promise<Result | undefined>;
  readonly #load: Pick<OwnLoad, 'isIdle' | 'give'>;
  readonly #peers = new Map<MessagePort, Peer<Task, Result>>();

  /** @param run - does a task of another thread; undefined if this thread cannot do it */
  constructor(run: (task: Task) => Promise<Result | undefined>, load: Pick<OwnLoad, 'isIdle' | 'give'> = new OwnLoad()) {
    this.#run = run;
    this.#load = load;
  }

  /** Connects with another thread, until either side closes the port or the other thread ends. */
  add(port: MessagePort): void {
    const peer = new Peer<Task, Result>(port);
    this.#peers.set(port, peer);
    port.on('message', (message: Message<Task, Result>) => {
      if (message.kind === 'task') void this.#serve(port, message.task);
      else if (message.kind === 'busy') peer.answered(undefined, { isBusy: true });
      else peer.answered(message.result, { isBusy: false });
    });
    port.once('close', () => {
      this.#peers.delete(port);
      peer.answered(undefined, { isBusy: true });
    });
    port.unref();
  }

  /** Returns the threads that have no task of this thread and were not busy when they were last asked. */
  readonly idle = (): readonly Pick<Peer<Task, Result>, 'run'>[] => [...this.#peers.values()].filter(({ isIdle }) => isIdle);

  async #serve(port: MessagePort, task: Task): Promise<void> {
    if (!this.#load.isIdle) {
      port.postMessage({ kind: 'busy' } satisfies Message<Task, Result>);
      return;
    }
    await this.#load.give(async () => {
      const result = await this.#run(task).catch(() => undefined); // the thread that gave the task finds the same error
      port.postMessage({ kind: 'done', result } satisfies Message<Task, Result>);
    });
  }
}
