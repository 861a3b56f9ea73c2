// A thread that takes parts of a common amount and gives them back, and checks after each step that the amount is not exceeded.
import { parentPort, workerData } from 'node:worker_threads';
import { CommonAmount } from '../../src/limits/common-amount.ts';

const { memory, row, isEndless = false, givesBack = false } = workerData;
const common = new CommonAmount(memory, row);

/** Takes everything, and gives it back when the main thread says so. */
function holdAll(): void {
  if (!common.tryTake(common.max)) throw new Error('another thread has taken something');
  parentPort?.on('message', () => common.giveBack(common.max));
  parentPort?.postMessage('taken');
}

function takeAndGiveBack(): void {
  const held: number[] = [];
  let [taken, ofCaller, mostOfCaller] = [0, 0, 0];
  for (let step = 0; step < 20_000 || isEndless; step += 1) {
    if (common.tryTake(1 + (step % 4))) {
      held.push(1 + (step % 4));
      taken += 1;
      const sum = held.reduce((all, each) => all + each, 0);
      if (sum > memory.max) throw new Error(`${sum} are more than ${memory.max}`);
    }
    if (step % 3 === 0) common.giveBack(held.shift() ?? 0);
    if (common.tryTake(1, 'caller')) ofCaller += 1;
    mostOfCaller = Math.max(mostOfCaller, ofCaller);
    if (step % 5 === 0 && ofCaller > 0) {
      common.giveBack(1, 'caller');
      ofCaller -= 1;
    }
    if (step === 1000 && isEndless) parentPort?.postMessage('begun');
  }
  for (const amount of held) common.giveBack(amount);
  common.giveBack(ofCaller, 'caller');
  parentPort?.postMessage({ taken, mostOfCaller });
}

if (givesBack) holdAll();
else takeAndGiveBack();
