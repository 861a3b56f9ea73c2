import { expect } from 'chai';
import { ChangeQueue } from '../../src/keys/change-queue.ts';

function deferred() {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

describe('ChangeQueue', () => {
  it('runs the changes of one name in order, one at a time', async () => {
    const queue = new ChangeQueue();
    const first = deferred();
    const log: string[] = [];
    const done = [
      queue.run('k', async () => {
        log.push('first begins');
        await first.promise;
        log.push('first ends');
        return true;
      }),
      queue.run('k', async () => log.push('second')),
      queue.run('k', async () => log.push('third')),
    ];
    await queue.run('other', async () => log.push('another name'));
    first.resolve();
    await Promise.all(done);
    expect(log).to.deep.equal(['first begins', 'another name', 'first ends', 'second', 'third']);
  });

  it('continues after a change that failed', async () => {
    const queue = new ChangeQueue();
    const failing = queue.run('k', async () => {
      throw new Error('no');
    });
    const next = queue.run('k', async () => 'yes');
    const [failed] = await Promise.allSettled([failing]);
    expect(failed.status).to.equal('rejected');
    expect(await next).to.equal('yes');
  });

  it('repeats a change after a conflict, a limited number of times', async () => {
    const queue = new ChangeQueue();
    let tries = 0;
    expect(await queue.run('k', async () => (++tries < 3 ? undefined : tries))).to.equal(3);
    const [failed] = await Promise.allSettled([queue.run('k', async () => undefined)]);
    expect(failed.status === 'rejected' && failed.reason).to.include({ code: 'too_many_conflicts' });
  });
});
