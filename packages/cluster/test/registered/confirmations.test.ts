import { outlasting } from '@transitd/raft-core';
import { expect } from 'chai';
import { MemberEvents } from '../../src/ports/member-events.ts';
import { Confirmations } from '../../src/registered/confirmations.ts';
import { PermissionClock } from '../../src/standbys/permission-clock.ts';

/** A clock that moves only while everything waits: then to the end of the shortest pause. */
function clock() {
  let nowMs = 0;
  const events = new MemberEvents();
  const permissions = new PermissionClock(events, { nowMs: () => nowMs });
  const pauses: { readonly untilMs: number; readonly end: () => void }[] = [];
  return {
    nowMs: () => nowMs,
    permissions,
    jumps: (ms: number): void => {
      nowMs += ms;
      events.emit('clockJump', { ms });
    },
    pauses: {
      pause: (ms: number) =>
        new Promise<void>((end) => {
          pauses.push({ untilMs: nowMs + Math.max(0, ms), end });
        }),
    },
    /** Lets time pass until `ended`; returns the time then. */
    until: async (ended: Promise<void>): Promise<number> => {
      let isOver = false;
      void ended.then(() => {
        isOver = true;
      });
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        if (isOver) return nowMs;
        const next = pauses.sort((a, b) => a.untilMs - b.untilMs).shift();
        if (next === undefined) throw new Error('nobody waits');
        nowMs = Math.max(nowMs, next.untilMs);
        next.end();
      }
    },
  };
}

const servesForMs = 2000;
const waiting = (time: ReturnType<typeof clock>) => ({
  ...{ clock: time.permissions, pauses: time.pauses, servesForMs, self: 1 },
});
const confirmationsOf = (
  time: ReturnType<typeof clock>,
  others: readonly number[],
  confirm: (id: number) => Promise<number>,
): Confirmations => new Confirmations({ ...waiting(time), nodes: { ids: [1, ...others] }, confirm });
const never = () => new Promise<number>(() => undefined);

describe('confirmations', () => {
  it('take no time without other nodes', async () => {
    const time = clock();
    const confirmations = confirmationsOf(time, [], never);
    expect(await time.until(confirmations.confirmed(7))).to.equal(0);
  });

  it('come from every other node, which is asked again until it has applied the index', async () => {
    const time = clock();
    const asked: number[] = [];
    const confirm = async (id: number): Promise<number> => {
      asked.push(id);
      return id === 2 || asked.filter((one) => one === 3).length > 2 ? 7 : 6;
    };
    const confirmations = confirmationsOf(time, [2, 3], confirm);
    expect(await time.until(confirmations.confirmed(7))).to.be.within(1, 200);
    expect(asked.toSorted()).to.deep.equal([2, 3, 3, 3]);
  });

  for (const { what, confirm } of [
    { what: 'is silent', confirm: never },
    { what: 'refuses', confirm: () => Promise.reject(new Error('refused')) },
    { what: 'stays behind', confirm: async () => 6 },
  ])
    it(`are not needed from a node that ${what} once it can serve no older state, also by a slow clock`, async () => {
      const time = clock();
      const confirmations = confirmationsOf(time, [2], confirm);
      expect(await time.until(confirmations.confirmed(7))).to.be.within(outlasting(servesForMs), outlasting(servesForMs) + 50);
    });

  it("are waited for anew from a jump of this node's clock", async () => {
    const time = clock();
    let asked = 0;
    const confirmations = confirmationsOf(time, [2], async () => {
      asked += 1;
      if (asked === 3) time.jumps(60_000);
      return 6;
    });
    expect(await time.until(confirmations.confirmed(7))).to.be.at.least(60_000 + outlasting(servesForMs));
  });

  it('are not needed from a node that is no longer registered', async () => {
    const time = clock();
    const nodes = {
      get ids() {
        return time.nowMs() < 500 ? [1, 2] : [1];
      },
    };
    const confirmations = new Confirmations({ ...waiting(time), nodes, confirm: async () => 6 });
    expect(await time.until(confirmations.confirmed(7))).to.be.within(500, 600);
  });
});
