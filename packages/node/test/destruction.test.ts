import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../process/test/test-clock.ts';
import { destruction, pauseMs } from '../src/destruction.ts';

const startMs = 1_760_000_000_000;
const epoch = (id: string) => ({ epochs: [{ number: 1, id, start: 0 }] });

describe('what is due by its time alone', () => {
  /** A state, and the time by two clocks. */
  const made = () => {
    const store = memoryStore();
    const state: Parameters<typeof destruction>[1] = { restoredBy: undefined, replication: undefined };
    const now = { utcMs: startMs, dueMs: startMs };
    const clock = clockOf(
      () => now.utcMs,
      () => now.dueMs,
    );
    const wait = (ms: number): void => {
      now.utcMs += ms;
      now.dueMs += ms;
    };
    const mayDestroy = async (): Promise<boolean> => (await destruction(store, state, clock))();
    const change = (changed: Partial<typeof state>): void => void Object.assign(state, changed);
    return { store, state, clock, now, wait, mayDestroy, change };
  };

  it('is destroyed at once in a state that nothing has replaced, and needs no record for that', async () => {
    const { mayDestroy, store } = made();
    expect(await mayDestroy()).to.equal(true);
    expect((await store.range({ prefix: '' })).records).to.deep.equal([]);
  });

  for (const [what, changed] of [
    ['a restore', { restoredBy: 'one' }],
    ['a promotion', { replication: epoch('ab') }],
  ] as const)
    it(`is kept for a day after ${what}, on every node`, async () => {
      const { mayDestroy, change, wait } = made();
      expect(await mayDestroy()).to.equal(true);
      change(changed);
      for (const ms of [0, 1, pauseMs - 2]) {
        wait(ms);
        expect(await mayDestroy()).to.equal(false);
      }
      wait(1);
      expect(await mayDestroy()).to.equal(true);
    });

  it('is kept again after another restore, also one of a state that was restored before', async () => {
    const { mayDestroy, change, wait } = made();
    for (const restoredBy of ['one', 'two', 'one']) {
      change({ restoredBy });
      expect(await mayDestroy()).to.equal(false);
      wait(pauseMs);
      expect(await mayDestroy()).to.equal(true);
    }
  });

  it('is kept from the moment at which a restore takes effect, also during a round', async () => {
    const { store, state, clock, change } = made();
    const mayDestroy = await destruction(store, state, clock);
    expect(mayDestroy()).to.equal(true);
    change({ restoredBy: 'one' });
    expect(mayDestroy()).to.equal(false);
  });

  it('is kept until a day has passed on both clocks, and no longer because a clock was ahead', async () => {
    const { mayDestroy, change, now } = made();
    now.utcMs += 1000 * pauseMs;
    change({ restoredBy: 'one' });
    expect(await mayDestroy()).to.equal(false);
    now.utcMs += pauseMs;
    expect(await mayDestroy(), 'due by one clock').to.equal(false);
    now.utcMs = startMs + 1;
    now.dueMs = startMs + 1;
    expect(await mayDestroy()).to.equal(false);
    now.utcMs += pauseMs;
    now.dueMs += pauseMs;
    expect(await mayDestroy()).to.equal(true);
  });
});
