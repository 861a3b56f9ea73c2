// The thread of one library. Calls block until the token answers, so the thread does nothing else.
import { parentPort, workerData } from 'node:worker_threads';
import type { CallMessage, ResultMessage, TokenCall } from './call.ts';
import { type Binding, finalize, initialize, loadLibrary } from './cryptoki.ts';
import { Pkcs11Failure } from './failure.ts';
import { perform } from './perform.ts';
import { Recovery } from './recovery.ts';
import { Sessions } from './sessions.ts';
import { Turns } from './turns.ts';

const path = String(workerData.path);
const turns = new Turns(workerData.turns as SharedArrayBuffer);
const recovery = new Recovery(Number(workerData.reinitializeEveryMs));
/** Kept when the library is initialized again: tokens lock after a few wrong PINs. */
const refusedPins = new Set<string>();
let binding: Binding | undefined;
let sessions: Sessions | undefined;
/** Whether this turn finalized the library. */
let finalized = false;

/** Loads and initializes the library with the first call; retries with each call until it works. */
function library() {
  binding ??= loadLibrary(path);
  if (sessions === undefined) {
    initialize(binding);
    sessions = new Sessions(binding, refusedPins);
  }
  return { binding, sessions };
}

/** Runs a task while no other thread of this process uses the library. */
function inTurn<T>(task: () => T): T {
  if (turns.take()) {
    sessions?.closeAll();
    sessions = undefined;
  }
  finalized = false;
  const [before, logouts] = [sessions, sessions?.logouts ?? 0];
  try {
    return task();
  } finally {
    const logoutsInTurn = (sessions?.logouts ?? 0) - (sessions === before ? logouts : 0);
    turns.end(finalized || logoutsInTurn > 0);
  }
}

function handle({ id, call }: CallMessage): ResultMessage {
  const message = resultOf(id, call);
  const code = 'failure' in message ? message.failure.code : undefined;
  if (recovery.isDue(JSON.stringify([call.key.slot, call.key.tokenLabel]), code, performance.now())) finalizeLibrary();
  return message;
}

function resultOf(id: number, call: TokenCall): ResultMessage {
  try {
    const { binding, sessions } = library();
    return { id, result: perform(binding, sessions, call) };
  } catch (error) {
    const failure =
      error instanceof Pkcs11Failure ? error : new Pkcs11Failure('token_failed', 'the thread that talks to the token failed');
    return { id, failure: { code: failure.code, message: failure.message } };
  }
}

/** Finalizes the library. The next call initializes it again. */
function finalizeLibrary(): void {
  sessions?.dropAll();
  sessions = undefined;
  finalized = true;
  if (binding !== undefined) finalize(binding);
}

parentPort?.on('message', (message: CallMessage | 'close') => {
  if (message !== 'close') {
    const answer = inTurn(() => handle(message));
    parentPort?.postMessage(answer); // a copy
    wipe(message.call, answer);
    return;
  }
  inTurn(() => sessions?.dropAll());
  parentPort?.close();
});

/** Wipes this thread's copies of a plaintext or of random bytes. */
function wipe(call: TokenCall, answer: ResultMessage): void {
  if (call.operation === 'encrypt') call.input.input.fill(0);
  const returnsSecret = call.operation === 'decrypt' || call.operation === 'random';
  if (returnsSecret && 'result' in answer && answer.result instanceof Uint8Array) answer.result.fill(0);
}
