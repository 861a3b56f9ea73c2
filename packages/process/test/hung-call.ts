// Ends after its work while a call hangs. Arguments: a pipe that nobody writes, a file that is written when a thread hangs, what hangs, and
// an exit code.
import { existsSync, open } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { OrdinaryEnd } from '../src/index.ts';

const [pipe = '', begun = '', hangs, code] = process.argv.slice(2);
const end = new OrdinaryEnd();
process.once('exit', () => console.log('the handlers of the end ran'));
const programs = {
  hung: `require('node:child_process').spawnSync('sh', ['-c', 'echo > "$0"; read line < "$1"', ...workerData.files])`,
  idle: `parentPort.on('message', () => undefined); require('node:fs').writeFileSync(workerData.files[0], '')`,
};
if (hangs === 'the pool of threads') open(pipe, 'r', () => undefined);
else {
  const program = hangs === 'a thread' ? programs.hung : programs.idle;
  const worker = new Worker(`const { parentPort, workerData } = require('node:worker_threads'); ${program};`, {
    eval: true,
    workerData: { files: [begun, pipe] },
  });
  worker.unref();
  while (!existsSync(begun)) await turn();
}
await end.end(Number(code));
