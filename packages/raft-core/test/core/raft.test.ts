import { expect } from 'chai';
import fc from 'fast-check';
import type { Raft } from '../../src/core/raft.ts';
import { LogDamage } from '../../src/log/log-damage.ts';
import { bytes, coreOf, freshStart, leader, settle } from './sole-voter.ts';

describe('Raft', () => {
  describe('proposals', () => {
    it('are refused as notLeader before the election', () => {
      const core = coreOf();
      expect(core.propose(bytes('a'))).to.deep.equal({ accepted: false, reason: 'notLeader' });
      expect(core.readIndex(1)).to.equal('notLeader');
      core.tick(0);
      expect(core.propose(bytes('a'))).to.deep.equal({ accepted: false, reason: 'notLeader' });
    });

    it('are refused as tooLarge above the entry limit, and accepted at the limit', () => {
      const core = leader({ entryBytesMax: 10 });
      expect(core.propose(new Uint8Array(11))).to.deep.equal({ accepted: false, reason: 'tooLarge' });
      expect(core.propose(new Uint8Array(10))).to.include({ accepted: true });
    });

    it('are refused as busy while too many bytes are uncommitted, and accepted again after the commit', () => {
      const core = leader({ uncommittedBytesMax: 10 });
      expect(core.propose(new Uint8Array(6))).to.include({ accepted: true });
      expect(core.propose(new Uint8Array(5))).to.deep.equal({ accepted: false, reason: 'busy' });
      expect(core.propose(new Uint8Array(4))).to.include({ accepted: true });
      expect(core.propose(new Uint8Array(0)), 'an empty payload is always taken').to.include({ accepted: true });
      settle(core);
      expect(core.propose(new Uint8Array(10))).to.include({ accepted: true });
    });

    it('above the limit are accepted one at a time, when nothing else is uncommitted', () => {
      const core = leader({ uncommittedBytesMax: 10 });
      expect(core.propose(new Uint8Array(100))).to.include({ accepted: true });
      expect(core.propose(new Uint8Array(1))).to.deep.equal({ accepted: false, reason: 'busy' });
      settle(core);
      expect(core.propose(new Uint8Array(100))).to.include({ accepted: true });
    });
  });

  describe('a start on a stored log', () => {
    const terms = [{ term: 2, firstIndex: 1 }];
    const hardState = { term: 2, vote: 1, commit: 2 };

    it('uses the newest of commit hint, applied and base, since the hint may be old', () => {
      expect(coreOf({ lastIndex: 9, terms, hardState }, {}, 5).status().commitIndex).to.equal(5);
      expect(coreOf({ lastIndex: 9, terms, hardState }, {}, 1).status().commitIndex).to.equal(2);
      const base = { ...freshStart.base, index: 7, term: 2 };
      const above = [{ term: 2, firstIndex: 8 }];
      expect(coreOf({ lastIndex: 9, terms: above, hardState, base }, {}, 7).status().commitIndex).to.equal(7);
    });

    it('hands out entries known to be committed before any election', () => {
      const core = coreOf({ lastIndex: 9, terms, hardState }, {}, 1);
      expect(core.ready().readLog).to.deep.equal([{ for: 0, lo: 2, hi: 2 }]);
      expect(core.hasReady(), 'one read at a time').to.equal(false);
    });

    for (const { name, start, applied } of [
      { name: 'ends before an applied entry', start: { lastIndex: 3, terms, hardState }, applied: 4 },
      { name: 'ends before a committed entry', start: { lastIndex: 1, terms, hardState }, applied: 0 },
      {
        name: 'begins after the end of the state machine',
        start: { base: { ...freshStart.base, index: 5, term: 2 }, lastIndex: 5, hardState },
        applied: 4,
      },
      {
        name: 'is of a later term than the stored one',
        start: { lastIndex: 3, terms: [{ term: 3, firstIndex: 1 }], hardState },
        applied: 2,
      },
      { name: 'has no terms', start: { lastIndex: 3, terms: [], hardState }, applied: 2 },
      { name: 'has a gap at its beginning', start: { lastIndex: 3, terms: [{ term: 2, firstIndex: 2 }], hardState }, applied: 2 },
      {
        name: 'has falling terms',
        start: { lastIndex: 3, terms: [...terms, { term: 1, firstIndex: 2 }], hardState },
        applied: 2,
      },
    ]) {
      it(`is refused as damage when the log ${name}`, () => {
        expect(() => coreOf(start, {}, applied)).to.throw(LogDamage);
      });
    }

    it('stops when the log returns other entries than requested', () => {
      const entry = (index: number, term: number) => ({ index, term, type: 'normal' as const, data: bytes('x') });
      for (const wrong of [
        [],
        [entry(1, 2)],
        [entry(2, 1)],
        [entry(2, 2), entry(4, 2)],
        [entry(2, 2), entry(3, 2), entry(4, 2)],
      ]) {
        const core = coreOf({ lastIndex: 9, terms, hardState: { ...hardState, commit: 3 } }, {}, 1);
        const [request] = core.ready().readLog;
        expect(() => request && core.logRead(request, wrong)).to.throw(/log/);
      }
    });

    it('reads on where a shorter answer ended', () => {
      const core = coreOf({ lastIndex: 9, terms, hardState: { ...hardState, commit: 4 } }, {}, 1);
      core.ready();
      core.logRead({ for: 0, lo: 2, hi: 4 }, [{ index: 2, term: 2, type: 'normal', data: bytes('x') }]);
      expect(core.ready().committed.map(({ index }) => index)).to.deep.equal([2]);
      expect(core.ready().readLog).to.deep.equal([{ for: 0, lo: 3, hi: 4 }]);
    });
  });

  it('limits the bytes of one batch of committed entries, but hands out at least one entry', () => {
    const core = leader({ committedBytesMax: 10 });
    settle(core);
    for (const size of [4, 6, 1, 30, 2]) core.propose(new Uint8Array(size));
    core.persisted(core.ready().seq);
    const sizes = settle(core).map(({ committed }) => committed.map(({ data }) => data.length));
    expect(sizes).to.deep.equal([[4, 6], [1], [30], [2]]);
  });

  it('keeps entries in memory until they are stable and applied, and then releases them', () => {
    const core = leader();
    core.propose(bytes('a'));
    settle(core);
    core.applied(2);
    core.checkInvariants();
    expect(() => core.applied(1)).to.throw(/the applied index ascends/);
    expect(() => core.applied(3)).to.throw(/the applied index ascends/);
  });

  it('hands out each new commit index once as a hint', () => {
    const core = leader();
    core.propose(bytes('a'));
    core.persisted(core.ready().seq);
    expect(core.ready().commitHint).to.equal(2);
    expect(core.hasReady()).to.equal(false);
  });

  it('describes a snapshot by term and configuration as of its index, and compacts to it', () => {
    const core = leader();
    for (const text of ['a', 'b', 'c']) core.propose(bytes(text));
    settle(core);
    expect(() => core.compacted(core.snapshotMeta(3)), 'not applied yet').to.throw(/applied/);
    core.applied(4);
    const meta = core.snapshotMeta(3);
    expect(meta).to.deep.equal({ index: 3, term: 1, conf: freshStart.base.conf, confIndex: 0 });
    core.compacted(meta);
    core.checkInvariants();
    expect(core.status()).to.include({ baseIndex: 3, lastIndex: 4 });
    expect(core.snapshotMeta(4)).to.deep.equal({ ...meta, index: 4 });
    expect(() => core.snapshotMeta(2)).to.throw();
  });

  it('is permanently faulty after a storage failure: it accepts, hands out and commits nothing', () => {
    const core = leader();
    core.propose(bytes('a'));
    const batch = core.ready();
    core.readIndex(1);
    core.storageFailed();
    core.persisted(batch.seq);
    core.tick(5000);
    expect(core.status()).to.include({ role: 'faulty', leader: 0, commitIndex: 1 });
    expect(core.hasReady()).to.equal(false);
    expect(core.propose(bytes('b'))).to.deep.equal({ accepted: false, reason: 'faulty' });
    expect(core.readIndex(2)).to.equal('faulty');
  });

  it('refuses a clock that falls, and an acknowledgement of a batch that it never handed out', () => {
    const core = leader();
    core.tick(10);
    expect(() => core.tick(9)).to.throw(/time never falls/);
    expect(() => core.persisted(99)).to.throw(/handed out/);
  });

  it('gives equal outputs for equal calls, byte for byte, and keeps its invariants whatever the order of calls', () => {
    const call = fc.oneof(
      fc.record({ do: fc.constant('propose' as const), size: fc.nat(40) }),
      fc.record({
        do: fc.constantFrom('tick' as const, 'ready' as const, 'persist' as const, 'apply' as const, 'read' as const),
      }),
    );
    fc.assert(
      fc.property(fc.array(call, { maxLength: 80 }), (calls) => {
        expect(transcript(leader(small), calls)).to.equal(transcript(leader(small), calls));
      }),
      { numRuns: 200, seed: 20_240_601 },
    );
  });
});

const small = { uncommittedBytesMax: 100, entryBytesMax: 30, committedBytesMax: 40 };

function transcript(core: Raft, calls: readonly { readonly do: string; readonly size?: number }[]): string {
  const lines: unknown[] = [];
  const unpersisted: number[] = [];
  let [nowMs, ctx, handedOut] = [0, 0, 1];
  for (const call of calls) {
    if (call.do === 'tick') core.tick(nowMs++);
    if (call.do === 'propose') lines.push(core.propose(new Uint8Array(call.size ?? 0).fill(calls.length)));
    if (call.do === 'read') lines.push(core.readIndex(ctx++));
    if (call.do === 'persist') core.persisted(unpersisted.shift() ?? 0);
    if (call.do === 'apply') core.applied(handedOut);
    if (call.do === 'ready' && core.hasReady()) {
      const batch = core.ready();
      unpersisted.push(batch.seq);
      for (const { index } of batch.committed) {
        expect(index).to.equal(handedOut + 1);
        handedOut = index;
      }
      lines.push(batch);
    }
    core.checkInvariants();
    lines.push(core.status());
  }
  return JSON.stringify(lines);
}
