import { Worker } from 'node:worker_threads';
import type { AnswerMessage, CallMessage, TokenCall, TokenResult } from './call.ts';
import { Pkcs11Failure } from './failure.ts';

export interface LibraryOptions {
  readonly path: string;
  /** Calls that wait at most, the one under way not counted; 256 when absent. */
  readonly waitingMax?: number;
  /** How long a caller waits for its answer, in line and under way; 10 s when absent. */
  readonly deadlineMs?: number;
  /** How often at most the library is initialized again while a token keeps failing; 10 s when absent. */
  readonly reinitializeEveryMs?: number;
  /** What the thread runs; a test's own. */
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
  /** The number of the call under way, also when its caller has given up: the thread is not free before it answers. */
  busyWith: number | undefined;
}

const [waitingMaxDefault, deadlineMsDefault, reinitializeEveryMsDefault] = [256, 10_000, 10_000];

/**
 * One PKCS#11 library, whose calls are made by a thread of its own, one after the other. The thread starts with the first call; after
 * it has died it starts again with the next one. A call that hangs cannot be ended: whoever waits gets `timeout`, and so does everyone behind it
 * until the token answers.
 */
export class Library {
  readonly #options: Required<Omit<LibraryOptions, 'thread'>> & { readonly thread: URL };
  /** In the order of arrival; the one under way, if its caller still waits, is the first. */
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
      thread: options.thread ?? new URL('./library-thread.ts', import.meta.url),
    };
  }

  /** @throws Pkcs11Failure */
  call(call: TokenCall): Promise<TokenResult> {
    if (this.#closed) return Promise.reject(closed());
    const underWay = this.#thread?.busyWith;
    const inLine = this.#waiting.size - (underWay !== undefined && this.#waiting.has(underWay) ? 1 : 0);
    if (inLine >= this.#options.waitingMax) {
      return Promise.reject(new Pkcs11Failure('busy', 'too many calls wait for the token'));
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

  /** Ends the sessions and the thread; whoever waits is refused. Nothing is to be asked afterwards. */
  close(): void {
    this.#closed = true;
    this.#refuseAll(closed());
    this.#thread?.worker.postMessage('close');
    this.#thread = undefined;
  }

  /** Hands the first call in line to the thread, if that is free. */
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
      worker: new Worker(script, { workerData: { path, reinitializeEveryMs }, stdin: false }),
      busyWith: undefined,
    };
    // A token that nobody waits for does not keep the process from ending; a caller's deadline does.
    thread.worker.unref();
    thread.worker.on('message', (answer: AnswerMessage) => this.#answered(thread, answer));
    thread.worker.on('error', () => this.#died(thread));
    thread.worker.on('exit', () => this.#died(thread));
    return thread;
  }

  #answered(thread: Thread, answer: AnswerMessage): void {
    const waiting = this.#take(answer.id);
    if (waiting !== undefined) {
      if ('failure' in answer) waiting.reject(new Pkcs11Failure(answer.failure.code, answer.failure.message));
      else waiting.resolve(answer.result);
    }
    if (thread !== this.#thread) return;
    thread.busyWith = undefined;
    this.#next();
  }

  /** Whoever waits is told: a new thread for all of them could die of the same call. */
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
