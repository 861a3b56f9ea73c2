// Fakes the thread of a library: the PIN of a call determines its result.
import { BroadcastChannel, parentPort } from 'node:worker_threads';
import type { CallMessage } from '../src/call.ts';

const port = parentPort;
if (port === null) throw new Error('not a thread');
port.on('message', (message: CallMessage | 'close') => {
  if (message === 'close') return port.close();
  const { id, call } = message;
  switch (call.key.pin) {
    case 'die':
      return process.exit(3);
    case 'throw':
      throw new Error('a fault of the thread');
    case 'hold': {
      const channel = new BroadcastChannel('release');
      channel.onmessage = () => {
        channel.close();
        port.postMessage({ id, result: Buffer.from('late') });
      };
      new BroadcastChannel('held').postMessage(id);
      return;
    }
    case 'refuse':
      return port.postMessage({ id, failure: { code: 'not_possible', message: 'no' } });
    default:
      return port.postMessage({ id, result: Buffer.from(call.key.pin) });
  }
});
