import { expect } from 'chai';
import { until } from '../../process/test/until.ts';
import { RepeatingTask } from '../src/repeating-task.ts';

describe('RepeatingTask', () => {
  it('runs between start and stop, and again after another start', async () => {
    let runs = 0;
    const task = new RepeatingTask(1, () => void runs++);
    for (let round = 0; round < 2; round++) {
      const before = runs;
      task.start();
      expect(task.isStarted).to.equal(true);
      await until(() => runs > before + 1);
      task.stop();
      expect(task.isStarted).to.equal(false);
    }
  });

  it('is one task, however often it is started', () => {
    const task = new RepeatingTask(1, () => expect.fail('it was stopped'));
    task.start();
    task.start();
    task.stop();
  });
});
