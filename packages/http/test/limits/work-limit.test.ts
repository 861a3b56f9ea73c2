import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import fc from 'fast-check';
import { WorkLimit } from '../../src/limits/work-limit.ts';
import { RequestError } from '../../src/reply/request-error.ts';
import { caller } from './caller.ts';

const codeOf = async (asked: () => Promise<void> | undefined): Promise<string> => {
  try {
    await asked();
  } catch (error) {
    if (error instanceof RequestError) return error.code;
    throw error;
  }
  return 'entered';
};

describe('a work limit', () => {
  it('admits up to its limit at once, without a promise, and the others in order of arrival', async () => {
    const limit = new WorkLimit({ atOnceMax: 2, waitingMax: 2 });
    expect([limit.enter(caller()), limit.enter(caller())]).to.deep.equal([undefined, undefined]);
    const order: string[] = [];
    const turns = ['first', 'second'].map((name) => limit.enter(caller())?.then(() => order.push(name)));
    expect([limit.atWork, limit.waiting]).to.deep.equal([2, 2]);
    limit.leave();
    await turns[0];
    limit.leave();
    await turns[1];
    expect(order).to.deep.equal(['first', 'second']);
    expect([limit.atWork, limit.waiting]).to.deep.equal([2, 0]);
  });

  it('gives a place at once or none at all to a request that does not wait', () => {
    const limit = new WorkLimit({ atOnceMax: 2, perCallerMax: 1, waitingMax: 1 });
    expect(['a', 'a', 'b', 'c'].map((name) => limit.tryEnter(name))).to.deep.equal([true, false, true, false]);
    expect([limit.atWork, limit.waiting, limit.refused]).to.deep.equal([2, 0, 0]);
    limit.leave('a');
    expect(limit.tryEnter('a')).to.equal(true);
    expect(new WorkLimit({ atOnceMax: 0, waitingMax: 1 }).tryEnter()).to.equal(false);
  });

  it('refuses and counts a request when the queue is full', async () => {
    const limit = new WorkLimit({ atOnceMax: 1, waitingMax: 1 });
    limit.enter(caller());
    const waits = limit.enter(caller());
    expect(await codeOf(() => limit.enter(caller()))).to.equal('overloaded');
    expect(limit.refused).to.equal(1);
    limit.leave();
    await waits;
  });

  it('refuses a request that waits too long, and serves the next', async () => {
    const limit = new WorkLimit({ atOnceMax: 1, waitingMax: 1, waitMsMax: 1 });
    limit.enter(caller());
    expect(await codeOf(() => limit.enter(caller()))).to.equal('overloaded');
    limit.leave();
    expect([limit.atWork, limit.waiting, limit.refused]).to.deep.equal([0, 0, 1]);
  });

  it('does not queue a caller that has already disconnected', async () => {
    const limit = new WorkLimit({ atOnceMax: 1, waitingMax: 2 });
    limit.enter(caller());
    for (const ending of [{ closed: true }, { destroyed: true }])
      expect(await codeOf(() => limit.enter(Object.assign(caller(), ending)))).to.equal('request_aborted');
    expect([limit.waiting, limit.refused]).to.deep.equal([0, 0]);
  });

  it('drops a caller that disconnects while it waits', async () => {
    const limit = new WorkLimit({ atOnceMax: 1, waitingMax: 2 });
    limit.enter(caller());
    const gone = caller();
    const answers = [gone, caller()].map((res) => codeOf(() => limit.enter(res)));
    gone.emit('close');
    limit.leave();
    expect(await Promise.all(answers)).to.deep.equal(['request_aborted', 'entered']);
    expect([limit.atWork, limit.waiting, limit.refused]).to.deep.equal([1, 0, 0]);
  });

  it('serves callers in turn, none above its share', async () => {
    const limit = new WorkLimit({ atOnceMax: 4, perCallerMax: 2, waitingMax: 3 });
    const begun: string[] = [];
    const enter = async (name: string): Promise<void> => {
      const outcome = await codeOf(() => limit.enter(caller(), name.slice(0, 1)));
      begun.push(outcome === 'entered' ? name : `${name} ${outcome}`);
    };
    const all = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2', 'b3'].map(enter);
    await Promise.all([all[0], all[1], all[4], all[5], all[6]]);
    expect(begun).to.have.members(['a1', 'a2', 'a5 overloaded', 'b1', 'b2']);
    limit.leave('b');
    await all[7];
    expect([limit.atWork, limit.waiting], 'b has the place, a waits behind its own').to.deep.equal([4, 2]);
    for (const each of ['a', 'a', 'b', 'b', 'a', 'a']) {
      limit.leave(each);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(all);
    expect([limit.atWork, limit.waiting]).to.deep.equal([0, 0]);
    expect(begun.slice(-2)).to.deep.equal(['a3', 'a4']);
  });

  it('never exceeds its limits and ends empty, whatever callers do', async () => {
    const step = fc.constantFrom('comes', 'leaves', 'gives up');
    await fc.assert(
      fc.asyncProperty(fc.nat(3), fc.nat(3), fc.array(step, { maxLength: 60 }), async (more, waitingMax, steps) => {
        const atOnceMax = 1 + more;
        const limit = new WorkLimit({ atOnceMax, waitingMax });
        let working = 0;
        const waiting: ServerResponse[] = [];
        for (const what of steps) {
          if (what === 'comes') {
            const res = caller();
            const entered = codeOf(() => limit.enter(res)).then((code) => {
              if (waiting.includes(res)) waiting.splice(waiting.indexOf(res), 1);
              if (code === 'entered') working += 1;
            });
            if (limit.waiting > waiting.length) waiting.push(res);
            else await entered;
          } else if (what === 'leaves' && working > 0) {
            working -= 1;
            limit.leave();
          } else waiting[0]?.emit('close');
          await new Promise((resolve) => setImmediate(resolve));
          expect(limit.atWork).to.equal(working).and.to.be.at.most(atOnceMax);
          expect(limit.waiting).to.equal(waiting.length).and.to.be.at.most(waitingMax);
          expect(waiting.length === 0 || working === atOnceMax, 'nobody waits beside a free place').to.equal(true);
        }
        while (limit.waiting > 0 || working > 0) {
          working -= 1;
          limit.leave();
          await new Promise((resolve) => setImmediate(resolve));
        }
        expect(limit.atWork).to.equal(0);
      }),
    );
  });
});
