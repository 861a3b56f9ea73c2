import { expect } from 'chai';
import { oneAtATime } from '../src/one-at-a-time.ts';

describe('tasks one at a time', () => {
  it('run in the order of the calls, and also after a task that failed', async () => {
    const exclusively = oneAtATime();
    const order: string[] = [];
    const first = Promise.withResolvers<void>();
    const task = (name: string, ends: Promise<void>) => async () => {
      order.push(`${name} begins`);
      await ends;
      order.push(`${name} ends`);
      return name;
    };
    const one = exclusively(task('one', first.promise));
    const two = exclusively(task('two', Promise.resolve()));
    await new Promise((resolve) => setImmediate(resolve));
    first.reject(new Error('it failed'));
    expect(await one.catch((error: Error) => error.message)).to.equal('it failed');
    expect(await two).to.equal('two');
    expect(order).to.deep.equal(['one begins', 'two begins', 'two ends']);
  });
});
