import { expect } from 'chai';
import { soleVoter } from '../src/confchange/conf-state.ts';
import { encodeConfState } from '../src/wire/conf-state.ts';
import { bytes, coreOf, freshStart, leader, settle } from './core/sole-voter.ts';

const conf = (change: Partial<ReturnType<typeof soleVoter>>) => ({ ...soleVoter(1), ...change });
const storedLog = { lastIndex: 5, terms: [{ term: 2, firstIndex: 1 }], hardState: { term: 2, vote: 1, commit: 0 } };

describe('the Raft paper, as far as one voter can show it', () => {
  it('§5.1: a term is opened by raising it and never falls', () => {
    const core = coreOf({ hardState: { term: 7, vote: 1, commit: 0 } });
    core.tick(0);
    expect(core.ready().hardState).to.deep.equal({ term: 8, vote: 1, commit: 0 });
    core.tick(1);
    expect(core.status().term).to.equal(8);
  });

  it('§5.2: a candidate leads only once its term and its vote for itself are durable, or a crash could let it vote twice', () => {
    const core = coreOf();
    core.tick(0);
    core.persisted(0);
    expect(core.status().role, 'nothing of this term was written').to.equal('candidate');
    const ballot = core.ready();
    expect(ballot.hardState).to.deep.equal({ term: 1, vote: 1, commit: 0 });
    expect(ballot.entries).to.deep.equal([]);
    expect(core.hasReady()).to.equal(false);
    expect(core.status().role).to.equal('candidate');
    core.persisted(ballot.seq);
    expect(core.status()).to.include({ role: 'leader', leader: 1, term: 1 });
  });

  it('§5.3: a leader only appends, its entries in the order of the proposals', () => {
    const core = leader();
    const results = ['a', 'b', 'c'].map((text) => core.propose(bytes(text)));
    expect(results.map((result) => result.accepted && result.index)).to.deep.equal([2, 3, 4]);
    expect(core.ready().entries.map(({ index, term, data }) => [index, term, ...data])).to.deep.equal([
      [2, 1, 97],
      [3, 1, 98],
      [4, 1, 99],
    ]);
  });

  it('§5.3: an entry commits only when a majority, here the own disk, holds it', () => {
    const core = leader();
    core.propose(bytes('a'));
    const first = core.ready();
    core.propose(bytes('b'));
    const second = core.ready();
    expect(core.status().commitIndex).to.equal(1);
    core.persisted(first.seq);
    expect(core.status().commitIndex).to.equal(2);
    core.persisted(second.seq);
    expect(core.status().commitIndex).to.equal(3);
  });

  it('§5.3: committed entries are handed out in order, each once, and never before they are stable here', () => {
    const core = leader();
    core.propose(bytes('a'));
    core.propose(bytes('b'));
    const written = core.ready();
    expect(written.committed).to.deep.equal([]);
    core.persisted(written.seq);
    expect(core.ready().committed.map(({ index }) => index)).to.deep.equal([2, 3]);
    expect(settle(core)).to.deep.equal([]);
  });

  it('§5.4.2: entries of an earlier term commit only through one of the own term', () => {
    const core = coreOf(storedLog);
    core.tick(0);
    const ballot = core.ready();
    core.persisted(ballot.seq);
    expect(core.status()).to.include({ role: 'leader', stableIndex: 5, commitIndex: 0, lastIndex: 6 });
    const noop = core.ready();
    expect(noop.entries).to.deep.equal([{ term: 3, index: 6, type: 'noop', data: new Uint8Array(0) }]);
    core.persisted(noop.seq);
    expect(core.status().commitIndex).to.equal(6);
  });

  it('§5.4.3: after a restart everything the state machine lacks is applied again, from the disk', () => {
    const core = coreOf(storedLog, {}, 2);
    core.tick(0);
    const batches = settle(core);
    expect(batches.flatMap(({ readLog }) => readLog ?? [])).to.deep.equal([{ lo: 3, hi: 5 }]);
    const stored = [3, 4, 5].map((index) => ({ term: 2, index, type: 'normal' as const, data: bytes('x') }));
    core.logRead(stored);
    expect(settle(core).flatMap(({ committed }) => committed.map(({ index }) => index))).to.deep.equal([3, 4, 5, 6]);
  });

  it('§8: a read waits until an entry of the own term is committed, for the leader cannot know of later commits before', () => {
    const core = coreOf(storedLog);
    core.tick(0);
    core.persisted(core.ready().seq);
    expect(core.readIndex(1)).to.equal(undefined);
    const noop = core.ready();
    expect(noop.reads).to.deep.equal([]);
    core.persisted(noop.seq);
    expect(core.ready().reads).to.deep.equal([{ ctx: 1, index: 6 }]);
    core.readIndex(2);
    expect(core.ready().reads).to.deep.equal([{ ctx: 2, index: 6 }]);
  });

  const others = {
    'another voter': { voters: [1, 2] },
    'a learner': { learners: [2] },
    'an outgoing voter': { votersOutgoing: [1, 2] },
    'no voter at all': { voters: [] },
    'somebody else alone': { voters: [2] },
  };
  for (const [name, change] of Object.entries(others)) {
    it(`thesis §4: a configuration with ${name} is refused, for one vote would be no majority of it`, () => {
      const base = { ...freshStart.base, conf: conf(change) };
      expect(() => coreOf({ base })).to.throw(/only member is this node/);
    });
  }

  it('thesis §4.1: another member named by any entry of the log, committed or not, is enough to be refused', () => {
    const entries = [conf({ voters: [1, 2] }), conf({})].map((named, i) => {
      return { term: 2, index: 3 + i, type: 'conf' as const, data: encodeConfState(named) };
    });
    expect(() => coreOf({ ...storedLog, confEntries: entries })).to.throw(/only member is this node/);
    expect(() => coreOf({ ...storedLog, confEntries: entries.slice(1) })).not.to.throw();
  });
});
