import { expect } from 'chai';
import { type StandbyNews, Standbys } from '../../src/standbys/standbys.ts';

const news = (appliedIndex: number, serves = true): StandbyNews => ({
  appliedIndex,
  serves,
  sealed: false,
  version: '1',
  hostname: 'h',
  apiAddress: 'http://127.0.0.1:1',
  clusterAddress: '127.0.0.1:2',
  certificate: 'ab',
});

/** A clock that moves only when somebody waits, so that nothing here takes time. */
function setup(answer: (id: number, index: number, nowMs: number) => number | undefined) {
  const clock = { nowMs: 100_000 };
  const asked: [id: number, index: number][] = [];
  const standbys = new Standbys({
    servesForMs: 2000,
    nowMs: () => clock.nowMs,
    pause: async (ms) => {
      await new Promise((resolve) => setImmediate(resolve));
      clock.nowMs += Math.max(ms, 0);
    },
    ask: async (id, index) => {
      asked.push([id, index]);
      const applied = answer(id, index, clock.nowMs);
      if (applied === undefined) throw new Error('no answer');
      return applied;
    },
  });
  return { standbys, clock, asked };
}

describe('who may still serve an older state', () => {
  it('is nobody on a node without others', async () => {
    const { standbys, asked } = setup(() => undefined);
    standbys.leads(() => [], 7);
    await standbys.confirmed(5);
    expect(asked).to.deep.equal([]);
  });

  it('is everybody at the beginning of a term, until it has confirmed', async () => {
    const { standbys, clock, asked } = setup((_id, index) => index);
    standbys.leads(() => [2, 3], 7);
    await standbys.confirmed(5);
    expect(asked).to.deep.equal([
      [2, 5],
      [3, 5],
    ]);
    expect(clock.nowMs).to.be.lessThan(102_000 + 5000);
  });

  it('is not asked again for what it has applied already', async () => {
    const { standbys, asked } = setup((_id, index) => index);
    standbys.leads(() => [2], 7);
    standbys.heard(2, news(9));
    await standbys.confirmed(9);
    expect(asked).to.deep.equal([]);
    await standbys.confirmed(10);
    expect(asked).to.deep.equal([[2, 10]]);
  });

  it('is a silent node until its time has run out, a quarter later for the difference of clocks', async () => {
    const { standbys, clock } = setup(() => undefined);
    standbys.leads(() => [2], 7);
    clock.nowMs += 10_000;
    standbys.heard(2, news(1));
    const began = clock.nowMs;
    await standbys.confirmed(5);
    expect(clock.nowMs - began).to.be.at.least(2500);
  });

  it('is waited for as long as it may serve, whichever clock is a tenth fast or slow', async () => {
    const { standbys, clock } = setup(() => undefined);
    standbys.leads(() => [2], 7);
    clock.nowMs += 10_000;
    standbys.heard(2, news(1));
    const began = clock.nowMs;
    await standbys.confirmed(5);
    const waitedMs = (clock.nowMs - began) / 1.1; // this node's clock is fast
    expect(waitedMs).to.be.greaterThan(2000 / 0.9); // and the standby's is slow
  });

  it('is not waited for any longer because it goes on echoing without applying', async () => {
    const { standbys, clock } = setup((id) => {
      standbys.heard(id, news(1));
      return undefined;
    });
    standbys.leads(() => [2], 7);
    const began = clock.nowMs;
    await standbys.confirmed(5);
    expect(clock.nowMs - began).to.be.within(2500, 2700);
  });

  it('is a node that was removed, as long as its last echo lets it serve', async () => {
    const { standbys, clock, asked } = setup((_id, index) => index);
    const others = [2];
    standbys.leads(() => others, 7);
    clock.nowMs += 10_000;
    standbys.heard(2, news(1));
    others.pop();
    await standbys.confirmed(5);
    expect(asked).to.deep.equal([[2, 5]]);
  });

  it('is not a node that serves nothing, once the term is old enough', async () => {
    const { standbys, clock, asked } = setup(() => undefined);
    standbys.leads(() => [2], 7);
    clock.nowMs += 2600;
    standbys.heard(2, news(1, false));
    await standbys.confirmed(5);
    expect(asked).to.deep.equal([]);
  });

  for (const { who, led, ledForMs, termBefore, waits } of [
    { who: 'who led right before for longer than an echo lets it serve', led: 6, ledForMs: 2501, termBefore: 6, waits: false },
    {
      who: 'who led right before, and nobody was elected in the terms since',
      led: 6,
      ledForMs: 2501,
      termBefore: 5,
      waits: false,
    },
    {
      who: 'who led right before, but may have been let serve before that',
      led: 6,
      ledForMs: 2499,
      termBefore: 6,
      waits: true,
    },
    {
      who: 'who led an earlier term: another one may have let it serve since',
      led: 5,
      ledForMs: 9000,
      termBefore: 6,
      waits: true,
    },
    { who: 'another one than who led right before', led: 6, ledForMs: 9000, termBefore: 6, waits: true },
  ])
    it(`at the beginning of a term ${waits ? 'may be' : 'is not'} ${who}`, async () => {
      const { standbys, clock } = setup(() => undefined);
      const other = who.startsWith('another');
      standbys.follows(2, led);
      clock.nowMs += ledForMs / 2;
      standbys.follows(2, led); // it was lost and heard again: it has led all the time
      clock.nowMs += ledForMs / 2;
      standbys.leads(() => [other ? 3 : 2], termBefore);
      const began = clock.nowMs;
      await standbys.confirmed(5);
      if (waits) expect(clock.nowMs - began).to.be.at.least(2500);
      else expect(clock.nowMs).to.equal(began);
    });

  it('is a former leader again as soon as it has echoed in this term', async () => {
    const { standbys, clock } = setup(() => undefined);
    standbys.follows(2, 6);
    clock.nowMs += 9000;
    standbys.leads(() => [2], 6);
    standbys.heard(2, news(1));
    const began = clock.nowMs;
    await standbys.confirmed(5);
    expect(clock.nowMs - began).to.be.at.least(2500);
  });

  it('is asked once for all writes that wait, and once more for those that came meanwhile', async () => {
    let release = (): void => undefined;
    const first = new Promise<void>((resolve) => {
      release = resolve;
    });
    const asked: number[] = [];
    const standbys = new Standbys({
      servesForMs: 2000,
      nowMs: () => 0,
      pause: () => new Promise(() => undefined),
      ask: async (_id, index) => {
        asked.push(index);
        if (asked.length === 1) await first;
        return index;
      },
    });
    standbys.leads(() => [2], 7);
    const waiting = [5, 6, 7].map((index) => standbys.confirmed(index));
    release();
    await Promise.all(waiting);
    expect(asked).to.deep.equal([5, 7]);
  });

  it('is nobody of those removed once their time to serve has run out, also who was never heard of in this term', async () => {
    const { standbys, clock } = setup(() => undefined);
    standbys.leads(() => [2], 7);
    await standbys.silenced(9);
    expect(clock.nowMs, 'since the beginning of the term').to.be.greaterThan(102_000 + 500);
    clock.nowMs += 5000;
    const heardMs = clock.nowMs;
    standbys.heard(2, news(1));
    await standbys.silenced(2);
    expect(clock.nowMs - heardMs).to.be.greaterThan(2500);
    const silentMs = clock.nowMs;
    await standbys.silenced(2);
    expect(clock.nowMs).to.equal(silentMs);
  });
});
