// Ends while one of its threads hangs in a call of the operating system. Arguments: a pipe that nobody writes, and an exit code.
import { Worker } from 'node:worker_threads';
import { endProcess } from '../src/index.ts';

const [pipe, code] = process.argv.slice(2);
const opens = `const { parentPort, workerData } = require('node:worker_threads');
parentPort.postMessage('opens');
require('node:fs').openSync(workerData, 'r');`;
process.once('exit', () => console.log('the handlers of the end ran'));
new Worker(opens, { eval: true, workerData: pipe }).once('message', () => endProcess(Number(code)));
