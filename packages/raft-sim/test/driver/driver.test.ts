import { expect } from 'chai';
import { SimClock } from '../../src/fakes/sim-clock.ts';
import { SimNode } from '../../src/fakes/sim-node.ts';
import { bytes, Observed, readyNode, restart, written } from './observed.ts';

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `n${i}`);

describe('Driver', () => {
  describe('start', () => {
    it('elects the only member, and is ready once the no-op of its term is applied', () => {
      const { node, run } = readyNode();
      expect(run.statuses.map(({ role, ready }) => `${role} ${ready}`)).to.deep.equal([
        'candidate false',
        'leader false',
        'leader true',
      ]);
      expect(run.driver.status()).to.deep.equal({
        nodeId: 1,
        clusterId: 'simulated',
        role: 'leader',
        ready: true,
        term: 1,
        leader: 1,
        byTransfer: false,
        lastIndex: 1,
        commitIndex: 1,
        appliedIndex: 1,
        flushedIndex: 1,
      });
      expect(node.disk.hardState).to.include({ term: 1, vote: 1 });
    });

    it('refuses proposals and reads as notLeader until it is elected', () => {
      const clock = new SimClock();
      const run = new SimNode(clock).start();
      const seen = new Observed();
      seen.propose(run, 'early');
      seen.read(run, 'early');
      clock.runUntil(() => run.driver.status().ready);
      expect(seen.kinds()).to.deep.equal(['early notLeader']);
      expect(seen.reads.map(({ outcome }) => outcome)).to.deep.equal([{ kind: 'refused', reason: 'notLeader' }]);
      expect(written(run)).to.deep.equal([]);
    });

    it('applies again everything that the state machine had not flushed, in pieces, though the commit hint is old', () => {
      const { clock, node, run, seen } = readyNode({ stateMachine: { delayMs: () => 1_000_000 }, driver: {} });
      for (const name of names(500)) seen.propose(run, name);
      clock.runUntil(() => seen.proposals.length === 500);
      node.crash(run);
      node.disk.hardState = { ...node.disk.hardState, commit: 0 };
      const next = restart(node, { driver: { limits: { logReadBytesMax: 100, committedBytesMax: 100 } } });
      expect(next.stateMachine.flushedAtOpen).to.equal(1);
      expect(written(next)).to.deep.equal(names(500));
      expect(next.driver.status()).to.include({ term: 2, lastIndex: 502 });
    });

    it('reads no more old entries than it can apply', () => {
      const { clock, node, run, seen } = readyNode({ stateMachine: { delayMs: () => 1_000_000 } });
      for (const name of names(100)) seen.propose(run, name);
      clock.runUntil(() => seen.proposals.length === 100);
      node.crash(run);
      const limits = { logReadBytesMax: 20, unflushedBytesMax: 1_000 };
      const next = node.start({ driver: { limits }, stateMachine: { delayMs: () => 5_000 } });
      clock.runFor(1_000);
      expect(next.log.counts.reads).to.be.within(1, 2);
      clock.runUntil(() => next.driver.status().ready);
      expect(written(next)).to.deep.equal(names(100));
    });

    it('applies what the commit hint covers even before it is elected', () => {
      const { clock, node, run, seen } = readyNode({ stateMachine: { delayMs: () => 1_000_000 } });
      for (const name of names(3)) {
        seen.propose(run, name);
        clock.runUntil(() => seen.proposals.at(-1)?.name === name);
      }
      node.crash(run);
      expect(node.disk.hardState.commit).to.equal(3);
      const delaysMs = [100, 1]; // the ends of the ballot's write and of the read that begins after it
      const next = node.start({ log: { delayMs: () => delaysMs.shift() ?? 1 } });
      clock.runUntil(() => next.driver.status().appliedIndex === 3);
      expect(next.driver.status()).to.include({ role: 'candidate', ready: false });
    });
  });

  describe('writes', () => {
    it('are answered in log order, each with its own result, and only once they are durable', () => {
      const { clock, node, run, seen } = readyNode();
      for (const name of names(5)) seen.propose(run, name);
      clock.runUntil(() => {
        expect(seen.proposals.length === 0 || node.disk.lastIndex === 6, 'durable before answered').to.equal(true);
        return seen.proposals.length === 5;
      });
      expect(seen.proposals.map(({ name }) => name)).to.deep.equal(names(5));
      for (const [i, { outcome }] of seen.proposals.entries()) {
        expect(outcome).to.deep.include({ kind: 'applied', index: i + 2 });
        if (outcome.kind === 'applied') expect(outcome.result.index).to.equal(i + 2);
      }
    });

    it('of one turn share one write, and those that arrive during its sync share the next one', () => {
      const { clock, run, seen } = readyNode({ log: { delayMs: () => 10 } });
      const before = { ...run.log.counts };
      for (const name of names(100)) seen.propose(run, name);
      clock.runFor(1);
      for (let turn = 0; turn < 5; turn++) {
        for (const name of names(20)) seen.propose(run, `${turn}${name}`);
        clock.runFor(1);
      }
      clock.runUntil(() => seen.proposals.length === 200);
      expect(run.log.counts.writes - before.writes, 'one write a turn').to.equal(6);
      expect(run.log.counts.syncs - before.syncs, 'two syncs for all').to.equal(2);
    });

    it('are answered without waiting for the flush of the state machine', () => {
      const { clock, run, seen } = readyNode({ stateMachine: { delayMs: () => 100 } });
      seen.propose(run, 'a');
      clock.runUntil(() => seen.proposals.length === 1);
      expect(run.driver.status()).to.include({ appliedIndex: 2, flushedIndex: 1 });
      clock.runUntil(() => run.driver.status().flushedIndex === 2);
    });

    it('are flushed once in an interval, however many turns apply them, and the last ones without another proposal', () => {
      const { clock, run, seen } = readyNode({ driver: { limits: { flushIntervalMs: 50 } } });
      const startMs = clock.now();
      const flushed = new Set<number>();
      for (const name of names(100)) {
        seen.propose(run, name);
        clock.runUntil(() => seen.proposals.at(-1)?.name === name);
        flushed.add(run.driver.status().flushedIndex);
      }
      expect(flushed.size - 1, 'flushes').to.be.within(1, (clock.now() - startMs) / 50 + 1);
      clock.runUntil(() => run.driver.status().flushedIndex === run.driver.status().appliedIndex);
    });

    it('are flushed before the end of the interval when they take a quarter of the memory for unflushed ones', () => {
      const { clock, run, seen } = readyNode({ driver: { limits: { flushIntervalMs: 1_000_000, unflushedBytesMax: 4_000 } } });
      for (const name of names(10)) seen.propose(run, name);
      clock.runUntil(() => run.driver.status().flushedIndex > 1);
      expect(clock.now()).to.be.below(1_000_000);
    });

    it('are never answered within the call that makes them, refusals included', () => {
      const { clock, run, seen } = readyNode({ driver: { limits: { inFlightMax: 1, entryBytesMax: 3 } } });
      for (const name of ['a', 'b']) seen.propose(run, name);
      expect(seen.proposals).to.deep.equal([]);
      clock.runUntil(() => seen.proposals.length === 2);
      seen.propose(run, 'long');
      clock.runUntil(() => seen.proposals.length === 3);
      expect(seen.kinds()).to.deep.equal(['b busy', 'a applied', 'long tooLarge']);
    });

    it('above the limit in flight are refused as busy, and refused proposals are never applied', () => {
      const { clock, run, seen } = readyNode({ driver: { limits: { inFlightMax: 10 } } });
      for (const name of names(15)) seen.propose(run, name);
      clock.runUntil(() => seen.proposals.length === 15);
      expect(seen.kinds().filter((kind) => kind.endsWith('busy'))).to.have.length(5);
      expect(written(run)).to.deep.equal(names(10));
      seen.propose(run, 'later');
      clock.runUntil(() => seen.proposals.length === 16);
      expect(written(run)).to.deep.equal([...names(10), 'later']);
    });

    it('above the limit of uncommitted bytes are refused as busy', () => {
      const { clock, run, seen } = readyNode({ driver: { limits: { uncommittedBytesMax: 4 } } });
      for (const name of ['aaa', 'bbb']) seen.propose(run, name);
      clock.runUntil(() => seen.proposals.length === 2);
      expect(seen.kinds()).to.deep.equal(['bbb busy', 'aaa applied']);
    });

    it('wait in the log while too much is applied and not flushed, so that a slow state disk does not fill the memory', () => {
      const { clock, run, seen } = readyNode({
        stateMachine: { delayMs: () => 500 },
        driver: { limits: { unflushedBytesMax: 300 } },
      });
      for (const name of names(10)) seen.propose(run, name);
      clock.runFor(100);
      expect(run.driver.status()).to.include({ commitIndex: 11, appliedIndex: 4, flushedIndex: 1 });
      clock.runUntil(() => seen.proposals.length === 10);
      expect(written(run)).to.deep.equal(names(10));
    });

    it('applied during a flush still count as unflushed after it', () => {
      const limits = { unflushedBytesMax: 300 };
      const { clock, run, seen } = readyNode({ stateMachine: { delayMs: () => 500 }, driver: { limits } });
      seen.propose(run, 'flushed alone');
      clock.runUntil(() => seen.proposals.length === 1);
      for (const name of names(10)) seen.propose(run, name);
      clock.runFor(100);
      expect(run.driver.status()).to.include({ appliedIndex: 4, flushedIndex: 1 });
      clock.runUntil(() => run.driver.status().flushedIndex === 2);
      clock.runFor(100);
      expect(run.driver.status()).to.include({ appliedIndex: 5, flushedIndex: 2 });
    });

    it('that are applied in one turn are published once, before any of them is answered, read or served by a lease', () => {
      let look = (): void => undefined;
      const { clock, run } = readyNode({ driver: { onLease: () => look() } });
      const { published, history } = run.stateMachine;
      const before = published.length;
      let answers = 0;
      const answered = (): void => {
        look();
        answers += 1;
      };
      look = () => expect(published.at(-1), 'the newest published entry').to.equal(history.length);
      for (const name of names(9)) run.driver.propose(bytes(name), answered);
      run.driver.readIndex(answered);
      clock.runUntil(() => answers === 10 || run.fatal.length > 0);
      expect(run.fatal).to.deep.equal([]);
      expect(published.slice(before)).to.deep.equal([10]);
    });

    it('are applied for a few milliseconds at a time, with room for other work in between', () => {
      let apply = (): void => undefined;
      const { clock, run, seen } = readyNode({ stateMachine: { onApply: () => apply(), delayMs: () => 1_000 } });
      apply = () => clock.spend(2);
      for (const name of names(9)) seen.propose(run, name);
      const chunks: number[] = [];
      const startMs = clock.now();
      clock.runUntil(() => {
        const before = chunks.reduce((sum, chunk) => sum + chunk, 0);
        if (seen.proposals.length > before) chunks.push(seen.proposals.length - before);
        return seen.proposals.length === 9;
      });
      expect(chunks, 'entries of 2 ms each, applied in one event').to.deep.equal([3, 3, 3]);
      expect(clock.now() - startMs, 'one chunk follows the other').to.be.below(25);
    });
  });

  describe('reads', () => {
    it('see everything that was answered before them', () => {
      const { clock, run, seen } = readyNode();
      seen.propose(run, 'a');
      clock.runUntil(() => seen.proposals.length === 1);
      seen.read(run, 'after a');
      clock.runUntil(() => seen.reads.length === 1);
      expect(seen.reads).to.deep.equal([{ name: 'after a', outcome: { kind: 'readable', index: 2 }, appliedIndex: 2 }]);
    });

    it('requested before an entry of the leader’s own term is committed wait for it', () => {
      const { node, run, clock } = readyNode();
      node.crash(run);
      const next = node.start();
      clock.runUntil(() => next.driver.status().role === 'leader');
      const seen = new Observed();
      seen.read(next, 'early');
      clock.runUntil(() => seen.reads.length === 1);
      expect(seen.reads).to.deep.equal([{ name: 'early', outcome: { kind: 'readable', index: 2 }, appliedIndex: 2 }]);
    });

    it('wait until everything committed before them is applied', () => {
      const { clock, run, seen } = readyNode({
        stateMachine: { delayMs: () => 500 },
        driver: { limits: { unflushedBytesMax: 300 } },
      });
      for (const name of names(10)) seen.propose(run, name);
      clock.runUntil(() => run.driver.status().commitIndex === 11);
      seen.read(run, 'r');
      clock.runFor(50);
      expect(seen.reads).to.deep.equal([]);
      clock.runUntil(() => seen.reads.length === 1);
      expect(seen.reads).to.deep.equal([{ name: 'r', outcome: { kind: 'readable', index: 11 }, appliedIndex: 11 }]);
    });

    it('cost no write', () => {
      const { clock, run, seen } = readyNode();
      const before = run.log.counts.writes;
      for (const name of names(100)) seen.read(run, name);
      clock.runUntil(() => seen.reads.length === 100);
      expect(run.log.counts.writes).to.equal(before);
    });
  });

  describe('compaction', () => {
    const limits = { compactAfterEntries: 20, keepTrailingEntries: 5 };

    it('deletes flushed entries above the threshold except the trailing ones, and the next start continues from there', () => {
      const { clock, node, run, seen } = readyNode({ driver: { limits } });
      for (const name of names(100)) {
        seen.propose(run, name);
        clock.runUntil(() => seen.proposals.at(-1)?.name === name);
      }
      clock.runUntil(() => node.disk.base.index > 80);
      expect(node.disk.base).to.include({ term: 1, confIndex: 0 });
      expect(node.disk.entries.length).to.be.within(5, 21);
      node.crash(run);
      const next = restart(node, { driver: { limits } });
      expect(written(next)).to.deep.equal(names(100));
    });

    it('never deletes unflushed entries', () => {
      const { clock, node, run, seen } = readyNode({ driver: { limits }, stateMachine: { delayMs: () => 5_000 } });
      for (const name of names(100)) seen.propose(run, name);
      clock.runUntil(() => seen.proposals.length === 100);
      clock.runFor(1_000);
      expect(node.disk.base.index).to.equal(0);
      clock.runUntil(() => node.disk.base.index > 0);
      expect(node.disk.base.index).to.equal(run.driver.status().flushedIndex - 5);
    });
  });

  it('repeats itself to the byte when everything is repeated', () => {
    const transcript = (): string => {
      const { clock, node, run, seen } = readyNode({ driver: { limits: { compactAfterEntries: 20, keepTrailingEntries: 5 } } });
      for (const name of names(40)) {
        seen.propose(run, name);
        seen.read(run, name);
        clock.runFor(0.3);
      }
      clock.runFor(100);
      const stored = [node.disk.entries, node.disk.hardState, node.disk.base].map((part) => JSON.stringify(part));
      return JSON.stringify([seen.proposals, seen.reads, run.statuses, run.driver.status(), clock.now(), stored]);
    };
    expect(transcript()).to.equal(transcript());
  });

  it('refuses to run on a log that names another member', () => {
    const node = new SimNode(new SimClock());
    node.disk.base = { ...node.disk.base, conf: { ...node.disk.base.conf, voters: [1, 2, 3] } };
    expect(() => node.start()).to.throw(/only member is this node/);
  });

  it('keeps the bytes of a proposal unchanged', () => {
    const { clock, run } = readyNode();
    const data = Uint8Array.from([0, 255, 128, 7]);
    let applied = 0;
    run.driver.propose(data, ({ kind }) => {
      if (kind === 'applied') applied += 1;
    });
    clock.runUntil(() => applied === 1);
    expect(run.stateMachine.history.at(-1)?.data).to.deep.equal(data);
  });
});
