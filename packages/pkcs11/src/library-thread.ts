// The thread of one library. Its calls block, for as long as the token likes: nothing else is done here.
import { parentPort, workerData } from 'node:worker_threads';
import type { AnswerMessage, CallMessage, TokenCall } from './call.ts';
import { type Binding, finalize, initialize, loadLibrary } from './cryptoki.ts';
import { Pkcs11Failure } from './failure.ts';
import { perform } from './perform.ts';
import { Recovery } from './recovery.ts';
import { Sessions } from './sessions.ts';

const path = String(workerData.path);
const recovery = new Recovery(Number(workerData.reinitializeEveryMs));
/** Kept while the thread lives, also when the library is initialized again: tokens lock after a few wrong PINs. */
const refusedPins = new Set<string>();
let binding: Binding | undefined;
let sessions: Sessions | undefined;

/** Loaded and initialized with the first call, and tried again with each one until it works. */
function library() {
  binding ??= loadLibrary(path);
  if (sessions === undefined) {
    initialize(binding, path);
    sessions = new Sessions(binding, refusedPins);
  }
  return { binding, sessions };
}

function answer({ id, call }: CallMessage): AnswerMessage {
  const message = answerOf(id, call);
  const code = 'failure' in message ? message.failure.code : undefined;
  if (recovery.isDue(JSON.stringify([call.key.slot, call.key.tokenLabel]), code, performance.now())) end();
  return message;
}

function answerOf(id: number, call: TokenCall): AnswerMessage {
  try {
    const { binding, sessions } = library();
    return { id, result: perform(binding, sessions, call) };
  } catch (error) {
    const failure =
      error instanceof Pkcs11Failure ? error : new Pkcs11Failure('token_failed', 'the thread that talks to the token failed');
    return { id, failure: { code: failure.code, message: failure.message } };
  }
}

/** The next call initializes the library again. */
function end(): void {
  sessions?.dropAll();
  sessions = undefined;
  if (binding !== undefined) finalize(binding);
}

parentPort?.on('message', (message: CallMessage | 'close') => {
  if (message !== 'close') return parentPort?.postMessage(answer(message));
  sessions?.dropAll();
  parentPort?.close();
});
