import { expect } from 'chai';
import { SimClock } from '../../src/fakes/sim-clock.ts';
import { SimNode, type SimRun } from '../../src/fakes/sim-node.ts';
import { Observed, readyNode, restart, written } from './observed.ts';

const stop = (clock: SimClock, run: SimRun): void => {
  const stopped: unknown[] = [];
  run.driver.stop((error) => stopped.push(error));
  clock.runUntil(() => stopped.length > 0);
  expect(stopped).to.deep.equal([undefined]);
};

describe('Driver.stop', () => {
  it('answers the proposals it has taken, refuses new ones, flushes and closes', () => {
    const { clock, node, run, seen } = readyNode({ log: { delayMs: () => 5 }, stateMachine: { delayMs: () => 50 } });
    seen.propose(run, 'in flight');
    clock.runFor(2);
    seen.propose(run, 'queued');
    let stopped = false;
    run.driver.stop(() => {
      stopped = true;
    });
    expect(run.driver.status().ready).to.equal(false);
    seen.propose(run, 'late');
    seen.read(run, 'late');
    clock.runUntil(() => stopped);
    expect(seen.kinds()).to.deep.equal(['late stopped', 'in flight applied', 'queued applied']);
    expect(seen.reads.map(({ outcome }) => outcome)).to.deep.equal([{ kind: 'refused', reason: 'stopped' }]);
    expect(run.driver.status()).to.include({ appliedIndex: 3, flushedIndex: 3 });
    expect(node.state.flushed).to.have.length(3);
    expect(run.fatal).to.deep.equal([]);
  });

  it('leaves a log from which the next start continues', () => {
    const { clock, node, run, seen } = readyNode();
    for (const name of ['a', 'b']) seen.propose(run, name);
    stop(clock, run);
    const next = restart(node);
    expect(next.stateMachine.flushedAtOpen).to.equal(3);
    expect(written(next)).to.deep.equal(['a', 'b']);
  });

  it('refuses waiting reads', () => {
    const { clock, node, run } = readyNode();
    node.crash(run);
    const next = node.start();
    clock.runUntil(() => next.driver.status().role === 'leader');
    const seen = new Observed();
    seen.read(next, 'early');
    stop(clock, next);
    expect(seen.reads.map(({ outcome }) => outcome)).to.deep.equal([{ kind: 'refused', reason: 'stopped' }]);
  });

  it('finishes a proposal even if a read next to it was refused before the core could confirm it', () => {
    const { clock, node, run } = readyNode();
    node.crash(run);
    const next = node.start({ log: { delayMs: () => 10 } });
    clock.runUntil(() => next.driver.status().role === 'leader');
    const seen = new Observed();
    seen.propose(next, 'a');
    seen.read(next, 'r');
    clock.runFor(1);
    stop(clock, next);
    expect(seen.kinds()).to.deep.equal(['a applied']);
    expect(seen.reads.map(({ outcome }) => outcome)).to.deep.equal([{ kind: 'refused', reason: 'stopped' }]);
  });

  it('works at any moment of a start, twice, and after itself', () => {
    for (let steps = 0; steps < 30; steps++) {
      const clock = new SimClock();
      const node = new SimNode(clock);
      const run = node.start();
      for (let step = 0; step < steps; step++) clock.step();
      const stopped: unknown[] = [];
      run.driver.stop((error) => stopped.push(error));
      run.driver.stop((error) => stopped.push(error));
      clock.runUntil(() => stopped.length === 2);
      run.driver.stop((error) => stopped.push(error));
      clock.runUntil(() => stopped.length === 3);
      expect(stopped).to.deep.equal([undefined, undefined, undefined]);
      expect(run.fatal).to.deep.equal([]);
      restart(node);
    }
  });

  it('ends all activity and leaves no planned task', () => {
    const { clock, run, seen } = readyNode();
    seen.propose(run, 'a');
    stop(clock, run);
    clock.runFor(1_000);
    expect(clock.step()).to.equal(false);
  });
});
