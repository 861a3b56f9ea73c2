// The thread of one library. Its calls block, for as long as the token likes: nothing else is done here.
import { parentPort, workerData } from 'node:worker_threads';
import type { AnswerMessage, CallMessage } from './call.ts';
import { type Binding, loadLibrary } from './cryptoki.ts';
import { Pkcs11Failure } from './failure.ts';
import { perform } from './perform.ts';
import { Sessions } from './sessions.ts';

let opened: { readonly binding: Binding; readonly sessions: Sessions } | undefined;

/** Loaded with the first call, and tried again with each one until it loads. */
function library() {
  if (opened === undefined) {
    const binding = loadLibrary(String(workerData.path));
    opened = { binding, sessions: new Sessions(binding) };
  }
  return opened;
}

function answer({ id, call }: CallMessage): AnswerMessage {
  try {
    const { binding, sessions } = library();
    return { id, result: perform(binding, sessions, call) };
  } catch (error) {
    const failure =
      error instanceof Pkcs11Failure ? error : new Pkcs11Failure('token_failed', 'the thread that talks to the token failed');
    return { id, failure: { code: failure.code, message: failure.message } };
  }
}

parentPort?.on('message', (message: CallMessage | 'close') => {
  if (message !== 'close') return parentPort?.postMessage(answer(message));
  opened?.sessions.dropAll();
  parentPort?.close();
});
