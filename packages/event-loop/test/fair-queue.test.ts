import { expect } from 'chai';
import fc from 'fast-check';
import { FairQueue } from '../src/fair-queue.ts';

describe('FairQueue', () => {
  it('lets callers take turns, and keeps the order of each caller', () => {
    const queue = new FairQueue<string>(10);
    for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) queue.add(item.slice(0, 1), item);
    expect(Array.from({ length: 7 }, () => queue.take())).to.deep.equal(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', undefined]);
    expect(queue.size).to.equal(0);
  });

  it('skips callers that are not allowed', () => {
    const queue = new FairQueue<string>(10);
    for (const item of ['a1', 'b1', 'a2']) queue.add(item.slice(0, 1), item);
    const notA = (caller: string) => (caller === 'a' ? 'beyond the share' : 'taken');
    expect(queue.take(notA)).to.equal('b1');
    expect(queue.take(notA)).to.equal(undefined);
    expect(queue.take()).to.equal('a1');
  });

  it('asks no further caller when nothing is left', () => {
    const queue = new FairQueue<string>(10);
    for (const item of ['a1', 'b1', 'c1']) queue.add(item.slice(0, 1), item);
    const asked: string[] = [];
    const taken = queue.take((caller) => {
      asked.push(caller);
      return caller === 'a' ? 'beyond the share' : 'full';
    });
    expect([taken, asked, queue.size]).to.deep.equal([undefined, ['a', 'b'], 3]);
  });

  it('drops, when full, the newest item of the caller with the most items, which may be the item just added', () => {
    const queue = new FairQueue<string>(3);
    for (const item of ['a1', 'a2', 'a3']) expect(queue.add('a', item)).to.equal(undefined);
    expect(queue.add('b', 'b1')).to.equal('a3');
    expect(queue.add('a', 'a4')).to.equal('a4');
    expect([queue.take(), queue.take(), queue.take()]).to.deep.equal(['a1', 'b1', 'a2']);
  });

  it('never exceeds its maximum, and lets a caller wait for at most one item of each other caller', () => {
    const item = fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.boolean());
    fc.assert(
      fc.property(fc.array(item, { maxLength: 60 }), fc.integer({ min: 1, max: 12 }), (steps, waitingMax) => {
        const queue = new FairQueue<{ caller: string }>(waitingMax);
        const waiting: { caller: string }[] = [];
        const turnsOfOthers = new Map<string, Set<string>>();
        for (const [caller, comes] of steps) {
          if (comes) {
            const added = { caller };
            waiting.push(added);
            const lost = queue.add(caller, added);
            if (lost !== undefined) waiting.splice(waiting.indexOf(lost), 1);
          } else {
            const taken = queue.take();
            expect(taken === undefined).to.equal(waiting.length === 0);
            if (taken === undefined) continue;
            expect(taken).to.equal(waiting.find((each) => each.caller === taken.caller));
            waiting.splice(waiting.indexOf(taken), 1);
            turnsOfOthers.delete(taken.caller);
            for (const other of new Set(waiting.map((each) => each.caller))) {
              if (other === taken.caller) continue;
              const seen = turnsOfOthers.get(other) ?? new Set();
              expect(seen.has(taken.caller), `${taken.caller} twice before ${other}`).to.equal(false);
              turnsOfOthers.set(other, seen.add(taken.caller));
            }
          }
          for (const waiter of turnsOfOthers.keys())
            if (!waiting.some((each) => each.caller === waiter)) turnsOfOthers.delete(waiter);
          expect(queue.size).to.equal(waiting.length).and.to.be.at.most(waitingMax);
        }
      }),
    );
  });
});
