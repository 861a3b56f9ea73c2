import { freshForIntervals } from '@transitd/health';
import { clockRateError, outlasting, undetectedPauseMs } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import { MemberEvents } from '../../src/ports/member-events.ts';
import { PermissionClock } from '../../src/standbys/permission-clock.ts';
import { type StandbyReport, Standbys } from '../../src/standbys/standbys.ts';

/** The shortest interval that the configuration allows. */
const intervalMsMin = 100;
/** For how long the active node waits for a standby that may serve for two seconds. */
const waitMs = outlasting(2000);

const report = (appliedIndex: number, serves = true): StandbyReport => ({
  appliedIndex,
  serves,
  sealed: false,
  diskLow: false,
  levels: { oldest: 1, newest: 1 },
  version: '1',
  hostname: 'h',
  apiAddress: 'http://127.0.0.1:1',
  clusterAddress: '127.0.0.1:2',
  certificate: 'ab',
});

/** A clock that advances only while the code waits, so that the tests take no time. */
function setup(answer: (id: number, index: number, nowMs: number) => number | undefined, servesForMs = 2000) {
  const clock = { nowMs: 100_000 };
  const events = new MemberEvents();
  const confirmed: [id: number, index: number][] = [];
  const standbys = new Standbys({
    servesForMs,
    clock: new PermissionClock(events, { nowMs: () => clock.nowMs }),
    pauses: {
      pause: async (ms) => {
        await new Promise((resolve) => setImmediate(resolve));
        clock.nowMs += Math.max(ms, 0);
      },
    },
    confirm: async (id, index) => {
      confirmed.push([id, index]);
      const applied = answer(id, index, clock.nowMs);
      if (applied === undefined) throw new Error('no answer');
      return applied;
    },
  });
  const jumps = (ms: number): void => {
    clock.nowMs += ms;
    events.emit('clockJump', { ms });
  };
  return { standbys, clock, jumps, confirmed };
}

describe('Standbys: a node that may still serve an older state', () => {
  it('does not exist in a cluster of one', async () => {
    const { standbys, confirmed } = setup(() => undefined);
    standbys.termBegins(() => [], 7);
    await standbys.confirmed(5);
    expect(confirmed).to.deep.equal([]);
  });

  it('is every node at the beginning of a term, until the node has confirmed', async () => {
    const { standbys, clock, confirmed } = setup((_id, index) => index);
    standbys.termBegins(() => [2, 3], 7);
    await standbys.confirmed(5);
    expect(confirmed).to.deep.equal([
      [2, 5],
      [3, 5],
    ]);
    expect(clock.nowMs).to.be.lessThan(102_000 + 5000);
  });

  it('is not asked about an index that it has applied already', async () => {
    const { standbys, confirmed } = setup((_id, index) => index);
    standbys.termBegins(() => [2], 7);
    standbys.heartbeatReceived(2, report(9));
    await standbys.confirmed(9);
    expect(confirmed).to.deep.equal([]);
    await standbys.confirmed(10);
    expect(confirmed).to.deep.equal([[2, 10]]);
  });

  it('is a silent node until its permission has expired by its own clock', async () => {
    const { standbys, clock } = setup(() => undefined);
    standbys.termBegins(() => [2], 7);
    clock.nowMs += 10_000;
    standbys.heartbeatReceived(2, report(1));
    const began = clock.nowMs;
    await standbys.confirmed(5);
    expect(clock.nowMs - began).to.be.at.least(waitMs);
  });

  it('is waited for as long as it may serve, with any interval and any rates of the clocks', async () => {
    const rate = fc.oneof(
      fc.constantFrom(1 - clockRateError, 1 + clockRateError),
      fc.double({ min: 1 - clockRateError, max: 1 + clockRateError, noNaN: true }),
    );
    const intervalMs = fc.oneof(fc.constant(intervalMsMin), fc.integer({ min: intervalMsMin, max: 60_000 }));
    await fc.assert(
      fc.asyncProperty(intervalMs, rate, rate, async (ms, ownRate, standbyRate) => {
        const servesForMs = freshForIntervals * ms;
        const { standbys, clock } = setup(() => undefined, servesForMs);
        standbys.termBegins(() => [2], 7);
        clock.nowMs += 2 * outlasting(servesForMs);
        standbys.heartbeatReceived(2, report(1));
        const began = clock.nowMs;
        await standbys.confirmed(5);
        expect((clock.nowMs - began) / ownRate).to.be.greaterThan(servesForMs / standbyRate + undetectedPauseMs);
      }),
    );
  });

  it("is waited for anew from a jump of this node's clock, which may have skipped the time that is left", async () => {
    const { standbys, clock, jumps, confirmed } = setup(() => {
      if (confirmed.length === 1) jumps(60_000);
      return undefined;
    });
    standbys.termBegins(() => [2], 7);
    const began = clock.nowMs;
    await standbys.confirmed(5);
    expect(clock.nowMs - began).to.be.at.least(60_000 + waitMs);
    standbys.heartbeatReceived(2, report(1));
    jumps(60_000);
    const jumpedMs = clock.nowMs;
    await standbys.servingEnded(2);
    expect(clock.nowMs - jumpedMs).to.be.at.least(waitMs);
  });

  it('does not extend the wait by sending heartbeats while it applies nothing', async () => {
    const { standbys, clock } = setup((id) => {
      standbys.heartbeatReceived(id, report(1));
      return undefined;
    });
    standbys.termBegins(() => [2], 7);
    const began = clock.nowMs;
    await standbys.confirmed(5);
    expect(clock.nowMs - began).to.be.within(waitMs, waitMs + 200);
  });

  it('is a removed node, as long as its last heartbeat lets it serve', async () => {
    const { standbys, clock, confirmed } = setup((_id, index) => index);
    const others = [2];
    standbys.termBegins(() => others, 7);
    clock.nowMs += 10_000;
    standbys.heartbeatReceived(2, report(1));
    others.pop();
    await standbys.confirmed(5);
    expect(confirmed).to.deep.equal([[2, 5]]);
  });

  it('is not a node that serves nothing, once the term is old enough', async () => {
    const { standbys, clock, confirmed } = setup(() => undefined);
    standbys.termBegins(() => [2], 7);
    clock.nowMs += waitMs + 100;
    standbys.heartbeatReceived(2, report(1, false));
    await standbys.confirmed(5);
    expect(confirmed).to.deep.equal([]);
  });

  for (const { who, led, ledForMs, termBefore, waits, other = false } of [
    {
      who: 'the former leader, after leading for longer than a heartbeat lets it serve',
      led: 6,
      ledForMs: waitMs + 2,
      termBefore: 6,
      waits: false,
    },
    {
      who: 'the former leader, when no node was elected in the terms since',
      led: 6,
      ledForMs: waitMs + 2,
      termBefore: 5,
      waits: false,
    },
    {
      who: 'the former leader, when a permission from before its term may still be valid',
      led: 6,
      ledForMs: waitMs - 2,
      termBefore: 6,
      waits: true,
    },
    {
      who: 'the leader of an earlier term: a later leader may have let it serve',
      led: 5,
      ledForMs: 9000,
      termBefore: 6,
      waits: true,
    },
    { who: 'a node that is not the former leader', led: 6, ledForMs: 9000, termBefore: 6, waits: true, other: true },
  ])
    it(`at the beginning of a term ${waits ? 'may be' : 'is not'} ${who}`, async () => {
      const { standbys, clock } = setup(() => undefined);
      standbys.leaderFound(2, led);
      clock.nowMs += ledForMs / 2;
      standbys.leaderFound(2, led); // contact was lost and found again: it led all the time
      clock.nowMs += ledForMs / 2;
      standbys.termBegins(() => [other ? 3 : 2], termBefore);
      const began = clock.nowMs;
      await standbys.confirmed(5);
      if (waits) expect(clock.nowMs - began).to.be.at.least(waitMs);
      else expect(clock.nowMs).to.equal(began);
    });

  it('at the beginning of a term may be the former leader, when the clock of this node jumped while it led', async () => {
    const { standbys, clock, jumps } = setup(() => undefined);
    standbys.leaderFound(2, 6);
    jumps(9000);
    standbys.termBegins(() => [2], 6);
    const began = clock.nowMs;
    await standbys.confirmed(5);
    expect(clock.nowMs - began).to.be.at.least(waitMs);
  });

  it('is a former leader as soon as it has sent a heartbeat in this term', async () => {
    const { standbys, clock } = setup(() => undefined);
    standbys.leaderFound(2, 6);
    clock.nowMs += 9000;
    standbys.termBegins(() => [2], 6);
    standbys.heartbeatReceived(2, report(1));
    const began = clock.nowMs;
    await standbys.confirmed(5);
    expect(clock.nowMs - began).to.be.at.least(waitMs);
  });

  it('is asked once for all waiting writes, and once more for writes that arrive meanwhile', async () => {
    let release = (): void => undefined;
    const first = new Promise<void>((resolve) => {
      release = resolve;
    });
    const confirmed: number[] = [];
    const standbys = new Standbys({
      servesForMs: 2000,
      clock: new PermissionClock(new MemberEvents(), { nowMs: () => 0 }),
      pauses: { pause: () => new Promise(() => undefined) },
      confirm: async (_id, index) => {
        confirmed.push(index);
        if (confirmed.length === 1) await first;
        return index;
      },
    });
    standbys.termBegins(() => [2], 7);
    const waiting = [5, 6, 7].map((index) => standbys.confirmed(index));
    release();
    await Promise.all(waiting);
    expect(confirmed).to.deep.equal([5, 7]);
  });

  it('is not a removed node whose permission has expired, heard in this term or not', async () => {
    const { standbys, clock } = setup(() => undefined);
    standbys.termBegins(() => [2], 7);
    await standbys.servingEnded(9);
    expect(clock.nowMs, 'since the beginning of the term').to.be.greaterThan(100_000 + waitMs);
    clock.nowMs += 5000;
    const heardMs = clock.nowMs;
    standbys.heartbeatReceived(2, report(1));
    await standbys.servingEnded(2);
    expect(clock.nowMs - heardMs).to.be.greaterThan(waitMs);
    const silentMs = clock.nowMs;
    await standbys.servingEnded(2);
    expect(clock.nowMs).to.equal(silentMs);
  });
});
