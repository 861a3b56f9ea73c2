import { expect } from 'chai';
import fc from 'fast-check';
import { raftLimits } from '../../../src/core/contract/limits.ts';
import { Inflight } from '../../../src/core/replication/inflight.ts';
import { Progress } from '../../../src/core/replication/progress.ts';

const limits = { ...raftLimits, inflightMessagesMax: 4, inflightBytesMax: 50 };
const fresh = () => new Progress(2, { session: 1, next: 5, nowMs: 0 }, limits);

describe('Inflight', () => {
  it('holds the same messages as a plain list of unacknowledged messages, within its limits', () => {
    const step = fc.oneof(fc.record({ send: fc.integer({ min: 1, max: 30 }) }), fc.record({ free: fc.nat(60) }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const window = new Inflight(limits);
        let model: { readonly end: number; readonly bytes: number }[] = [];
        let end = 0;
        for (const one of steps) {
          if ('free' in one) {
            window.free(one.free);
            model = model.filter((message) => message.end > one.free);
          } else if (!window.isFull) {
            end += 1 + (one.send % 3);
            window.add(end, one.send);
            model.push({ end, bytes: one.send });
          }
          const bytes = model.reduce((sum, message) => sum + message.bytes, 0);
          expect([window.count, window.bytes]).to.deep.equal([model.length, bytes]);
          expect(window.isFull).to.equal(model.length >= 4 || bytes >= 50);
        }
      }),
    );
  });
});

describe('Progress', () => {
  it('keeps match < next, never lowers match, and has a window only while replicating, whatever the peer answers', () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('ack' as const), index: fc.nat(20), first: fc.nat(20) }),
      fc.record({ do: fc.constant('reject' as const), index: fc.nat(20), candidate: fc.nat(20) }),
      fc.record({ do: fc.constant('send' as const), count: fc.integer({ min: 1, max: 3 }) }),
      fc.record({ do: fc.constantFrom('probe' as const, 'snapshot' as const) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const peer = fresh();
        for (const one of steps) {
          const { match, state, next } = peer;
          if (one.do === 'ack') {
            peer.acknowledged(one.index, one.first);
            expect(peer.match).to.equal(Math.max(match, one.index));
          } else if (one.do === 'reject') {
            const believed = peer.rejected(one.index, one.candidate);
            expect(peer.match).to.equal(match);
            if (!believed) expect([peer.state, peer.next]).to.deep.equal([state, next]);
            if (believed && state === 'probe') expect(peer.next).to.be.at.most(one.index);
          } else if (one.do === 'send') {
            if (state === 'replicate' && !peer.inflight.isFull) peer.sent(next + one.count - 1, 10);
          } else if (one.do === 'probe') {
            if (state === 'replicate') peer.probe();
          } else {
            peer.offerSnapshot(match + 3, 0);
          }
          peer.checkInvariants(limits);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('treats a rejection below the acknowledged index as stale, so that no probe repeats forever', () => {
    const peer = fresh();
    peer.acknowledged(7, 1);
    peer.probe();
    expect(peer.rejected(7, 3)).to.equal(false);
    expect(peer.next).to.equal(8);
  });

  it('counts an answered round for all earlier rounds, and never goes back', () => {
    const peer = fresh();
    peer.answered({ number: 5, sentAtMs: 50 });
    peer.answered({ number: 3, sentAtMs: 30 });
    expect(peer.round).to.deep.equal({ number: 5, sentAtMs: 50 });
  });
});
