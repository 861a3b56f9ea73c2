// Tokens that are dated while the wall clock and the monotonic clock disagree.

import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import type { ClockDispute, TimeSource } from '../../src/index.ts';
import { duePrefix } from '../../src/tokens/token-paths.ts';
import { Wrapping } from '../../src/tokens/wrapping.ts';
import { setup as opened } from '../fixtures.ts';

const [secondMs, dayMs] = [1000, 24 * 3_600_000];
const beginMs = 1_000_000;

/** Two clocks of a node. Tokens are dated by the later one. */
async function setup() {
  let dispute: ClockDispute | undefined;
  let decided = (_: TimeSource, _aheadMs: number): void => undefined;
  const all = await opened(undefined, {
    current: () => dispute,
    onDecided: (listener) => {
      decided = listener;
      return () => undefined;
    },
  });
  const { clock } = all;
  clock.now = beginMs;
  /** The wall clock jumps ahead by a day, or the steady clock was a day ahead from the start and the wall clock was set right. */
  const disagree = (earlier: TimeSource): void => {
    dispute = { differenceMs: dayMs, earlier };
    clock.now = beginMs + dayMs;
  };
  /** `right` proves right, at a time that is `afterMs` later than `disagree` by that clock. */
  const decide = (right: TimeSource, afterMs = 0, aheadMs = dispute?.earlier === 'wall' ? -dayMs : dayMs): void => {
    clock.now = beginMs + afterMs + (right === dispute?.earlier ? 0 : dayMs);
    dispute = undefined;
    decided(right, aheadMs);
  };
  const datesOf = async (token: string) => {
    const { createdMs, renewedMs, expiresMs } = (await all.tokens.find(token))?.record ?? {};
    return { createdMs, renewedMs, expiresMs };
  };
  return { ...all, disagree, decide, datesOf };
}

describe('a token that is dated while the clocks disagree', () => {
  for (const earlier of ['steady', 'wall'] as const) {
    it(`expires after its TTL by the ${earlier} clock, if the ${earlier} clock was behind and proves right`, async () => {
      const { create, disagree, decide, good, clock, disputedDates, records } = await setup();
      disagree(earlier);
      const { token } = await create({ ttlS: 10, policies: ['default'] });
      expect(await good(token), 'it is not refused at once').to.equal(true);
      decide(earlier, 5 * secondMs);
      expect(await disputedDates.correct(10)).to.equal(1);
      expect(await good(token)).to.equal(true);
      clock.now = beginMs + 10 * secondMs;
      expect(await good(token)).to.equal(false);
      const due = (await records(duePrefix)).length;
      expect(due, 'one entry of the index by expiry').to.equal(1);
    });

    it(`keeps its dates if the ${earlier} clock was behind and the other one proves right`, async () => {
      const { create, disagree, decide, datesOf, disputedDates } = await setup();
      disagree(earlier);
      const { token } = await create({ ttlS: 10, policies: ['default'] });
      const before = await datesOf(token);
      decide(earlier === 'wall' ? 'steady' : 'wall');
      expect(await disputedDates.correct(10)).to.equal(0);
      expect(await datesOf(token)).to.deep.equal(before);
    });
  }

  it('keeps its dates if the wall clock was behind, is set again, and is accepted with another time', async () => {
    for (const aheadMs of [-30 * secondMs, dayMs]) {
      const { create, disagree, decide, datesOf, disputedDates } = await setup();
      disagree('wall');
      const { token } = await create({ ttlS: 3600, policies: ['default'] });
      const before = await datesOf(token);
      decide('wall', 0, aheadMs);
      await disputedDates.correct(10);
      expect(await datesOf(token), `accepted ${aheadMs} ms ahead`).to.deep.equal(before);
    }
  });

  it('is corrected while the record of another one cannot be read', async () => {
    const { create, disagree, decide, datesOf, disputedDates, store } = await setup();
    disagree('steady');
    await create({ ttlS: 3600, policies: ['default'] });
    const { token } = await create({ ttlS: 3600, policies: ['default'] });
    decide('steady');
    const { commit } = store;
    let unreadable: string | undefined;
    store.commit = (transaction, ...rest) => {
      unreadable ??= transaction.conditions[0]?.path;
      return transaction.conditions[0]?.path === unreadable
        ? Promise.reject(new Error('unreadable'))
        : commit(transaction, ...rest);
    };
    for (let round = 0; round < 2; round += 1) await disputedDates.correct(10).catch(() => undefined);
    expect((await datesOf(token)).createdMs).to.equal(beginMs);
  });

  it('is corrected once', async () => {
    const { create, disagree, decide, datesOf, disputedDates, store } = await setup();
    disagree('steady');
    const { token } = await create({ ttlS: 3600, policies: ['default'] });
    decide('steady');
    await disputedDates.correct(10);
    const corrected = await datesOf(token);
    expect(corrected).to.deep.equal({ createdMs: beginMs, renewedMs: 0, expiresMs: beginMs + 3_600_000 });
    let commits = 0;
    const { commit } = store;
    store.commit = (...args) => {
      commits += 1;
      return commit(...args);
    };
    expect(await disputedDates.correct(10)).to.equal(0);
    disagree('steady');
    decide('steady');
    expect(await disputedDates.correct(10)).to.equal(0);
    expect(commits).to.equal(0);
  });

  it('that existed before keeps its creation date, and the renewal counts from the right time', async () => {
    const { create, disagree, decide, datesOf, disputedDates, registry, clock } = await setup();
    const { token } = await create({ ttlS: 48 * 3600, policies: ['default'] });
    disagree('steady');
    await registry.renew({ token }, 3600);
    decide('steady');
    await disputedDates.correct(10);
    expect(await datesOf(token)).to.deep.equal({ createdMs: beginMs, renewedMs: beginMs, expiresMs: beginMs + 3_600_000 });
    expect(clock.now).to.equal(beginMs);
  });

  it('created and renewed during the disagreement gets both dates corrected', async () => {
    const { create, disagree, decide, datesOf, disputedDates, registry, clock } = await setup();
    disagree('steady');
    const { token } = await create({ ttlS: 3600, policies: ['default'] });
    clock.now += 60 * secondMs;
    await registry.renew({ token }, 0);
    decide('steady', 60 * secondMs);
    await disputedDates.correct(10);
    const renewedMs = beginMs + 60 * secondMs;
    expect(await datesOf(token)).to.deep.equal({ createdMs: beginMs, renewedMs, expiresMs: renewedMs + 3_600_000 });
  });

  it('keeps the expiry of a renewal after the clocks agree', async () => {
    const { create, disagree, decide, datesOf, disputedDates, registry } = await setup();
    disagree('steady');
    const { token } = await create({ ttlS: 3600, policies: ['default'] });
    decide('steady', 60 * secondMs);
    await registry.renew({ token }, 7200);
    await disputedDates.correct(10);
    const renewedMs = beginMs + 60 * secondMs;
    expect(await datesOf(token)).to.deep.equal({ createdMs: beginMs, renewedMs, expiresMs: renewedMs + 7_200_000 });
  });

  it('is revoked, and not written again', async () => {
    const { create, disagree, decide, disputedDates, registry, records } = await setup();
    disagree('steady');
    const { token } = await create({ ttlS: 3600, policies: ['default'] });
    await registry.revoke({ token });
    const before = await records('access/');
    decide('steady');
    await disputedDates.correct(10);
    expect(await records('access/')).to.deep.equal(before);
  });

  it('that wraps a response is corrected too', async () => {
    const { disagree, decide, datesOf, disputedDates, store, tokens, registry, clock } = await setup();
    const wrapping = new Wrapping({ store, tokens, dates: registry.dates, clock: clockOf(() => clock.now), ttlSMax: 3600 });
    disagree('steady');
    const { token } = await wrapping.wrap({ owner: 'o', status: 200, path: 'a', ttlS: 60, wrappedAccessor: '', body: '{}' });
    decide('steady');
    await disputedDates.correct(10);
    expect((await datesOf(token)).expiresMs).to.equal(beginMs + 60 * secondMs);
  });

  it('is corrected in the next call if the store fails, and in several calls if there are many', async () => {
    const { create, disagree, decide, disputedDates, store } = await setup();
    disagree('steady');
    for (let n = 0; n < 5; n += 1) await create({ ttlS: 3600, policies: ['default'] });
    decide('steady');
    const { commit } = store;
    store.commit = () => Promise.reject(new Error('no quorum'));
    await disputedDates.correct(10).then(
      () => expect.fail('the failure is reported'),
      () => undefined,
    );
    store.commit = commit;
    expect([await disputedDates.correct(3), await disputedDates.correct(3), await disputedDates.correct(3)]).to.deep.equal([
      3, 2, 0,
    ]);
  });
});
