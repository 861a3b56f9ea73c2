import { expect } from 'chai';
import { SerialQueue } from '../src/serial-queue.ts';

describe('SerialQueue', () => {
  it('runs one task at a time, in order of arrival, also after one that fails', async () => {
    const queue = new SerialQueue(3, () => new Error('full'));
    const events: string[] = [];
    const task = (name: string) => async (): Promise<string> => {
      events.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      events.push(`${name} ends`);
      if (name === 'b') throw new Error('b failed');
      return name;
    };
    const results = await Promise.allSettled(['a', 'b', 'c'].map((name) => queue.run(task(name))));
    expect(results.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled']);
    expect(events).to.deep.equal(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  });

  it('refuses a task when it is full, and takes one again after another has finished', async () => {
    const queue = new SerialQueue(2, () => new Error('full'));
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = queue.run(() => promise);
    const second = queue.run(async () => undefined);
    expect(await queue.run(async () => undefined).catch((error: Error) => error.message)).to.equal('full');
    resolve();
    await Promise.all([first, second]);
    expect(await queue.run(async () => 'taken')).to.equal('taken');
  });
});
