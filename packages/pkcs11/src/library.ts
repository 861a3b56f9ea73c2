import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { CallMessage, ResultMessage, TokenCall, TokenResult } from './call.ts';
import { Pkcs11Failure } from './failure.ts';
import { turnsOf } from './turns.ts';

export interface LibraryOptions {
  readonly path: string;
  /** Maximum number of waiting calls, not counting the call in progress; 256 when absent. */
  readonly waitingMax?: number;
  /** How long a caller waits for the result of its call, including the time in the queue; 10 s when absent. */
  readonly deadlineMs?: number;
  /** Shortest interval between reinitializations of the library while a token keeps failing; 10 s when absent. */
  readonly reinitializeEveryMs?: number;
  /** Script of the thread, for tests. */
  readonly thread?: URL;
}

interface Waiting {
  readonly call: TokenCall;
  readonly deadline: NodeJS.Timeout;
  readonly resolve: (result: TokenResult) => void;
  readonly reject: (failure: Pkcs11Failure) => void;
}

interface Thread {
  readonly worker: Worker;
  /** Id of the call in progress. The thread is busy until it answers, even if the caller has given up. */
  busyWith: number | undefined;
}

// The thread's module has this module's extension: .ts in a checkout, .js in a release.
const threadScript = new URL(`./library-thread${extname(import.meta.url)}`, import.meta.url);

const [waitingMaxDefault, deadlineMsDefault, reinitializeEveryMsDefault] = [256, 10_000, 10_000];

/**
 * One PKCS#11 library. Its own thread makes the calls, one after the other. The thread starts with the first call and, if it has
 * ended, again with the next call. A call that hangs cannot be canceled: it and the calls after it fail with `timeout` until the
 * token answers.
 */
export class Library {
  readonly #options: Required<Omit<LibraryOptions, 'thread'>> & { readonly thread: URL };
  /** Waiting calls in order of arrival. The first call is in progress, unless its caller has given up. */
  readonly #waiting = new Map<number, Waiting>();
  #thread: Thread | undefined;
  #lastId = 0;
  #closed = false;

  constructor(options: LibraryOptions) {
    const { path, waitingMax = waitingMaxDefault, deadlineMs = deadlineMsDefault } = options;
    const { reinitializeEveryMs = reinitializeEveryMsDefault } = options;
    this.#options = {
      path,
      waitingMax,
      deadlineMs,
      reinitializeEveryMs,
      thread: options.thread ?? threadScript,
    };
  }

  /** Queues a call. @throws Pkcs11Failure */
  call(call: TokenCall): Promise<TokenResult> {
    if (this.#closed) return Promise.reject(closed());
    const inProgress = this.#thread?.busyWith;
    const queued = this.#waiting.size - (inProgress !== undefined && this.#waiting.has(inProgress) ? 1 : 0);
    if (queued >= this.#options.waitingMax) {
      return Promise.reject(new Pkcs11Failure('busy', 'too many calls are waiting for the token'));
    }
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const deadline = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Pkcs11Failure('timeout', 'the token did not answer in time'));
      }, this.#options.deadlineMs);
      this.#waiting.set(id, { call, deadline, resolve, reject });
      this.#next();
    });
  }

  /** Ends the sessions and the thread. Waiting and later calls fail with `closed`. */
  close(): void {
    this.#closed = true;
    this.#refuseAll(closed());
    this.#thread?.worker.postMessage('close');
    this.#thread = undefined;
  }

  /** Sends the first queued call to the thread if it is idle. */
  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined || this.#thread?.busyWith !== undefined) return;
    const [id, { call }] = first;
    this.#thread ??= this.#start();
    this.#thread.busyWith = id;
    const message: CallMessage = { id, call };
    this.#thread.worker.postMessage(message);
  }

  #start(): Thread {
    const { path, reinitializeEveryMs, thread: script } = this.#options;
    const thread: Thread = {
      worker: new Worker(script, { workerData: { path, reinitializeEveryMs, turns: turnsOf(path) }, stdin: false }),
      busyWith: undefined,
    };
    // The thread does not keep the process alive; the deadlines of callers do.
    thread.worker.unref();
    thread.worker.on('message', (answer: ResultMessage) => this.#answered(thread, answer));
    thread.worker.on('error', () => this.#died(thread));
    thread.worker.on('exit', () => this.#died(thread));
    return thread;
  }

  #answered(thread: Thread, answer: ResultMessage): void {
    const waiting = this.#take(answer.id);
    if (waiting !== undefined) {
      if ('failure' in answer) waiting.reject(new Pkcs11Failure(answer.failure.code, answer.failure.message));
      else waiting.resolve(answer.result);
    }
    if (thread !== this.#thread) return;
    thread.busyWith = undefined;
    this.#next();
  }

  /** Fails all waiting calls: one of them may have ended this thread and would end the next one too. */
  #died(thread: Thread): void {
    if (thread !== this.#thread) return;
    this.#thread = undefined;
    this.#refuseAll(new Pkcs11Failure('token_failed', 'the thread that talks to the token has ended'));
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    clearTimeout(waiting?.deadline);
    return waiting;
  }

  #refuseAll(failure: Pkcs11Failure): void {
    for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(failure);
  }
}

const closed = (): Pkcs11Failure => new Pkcs11Failure('closed', 'the node is being sealed or stopped');
