import { expect } from 'chai';
import type { LogOperation } from '../../src/fakes/memory-disk.ts';
import { readyNode, restart, written } from './observed.ts';

const broken = new Error('no space left');

describe('Driver, when a port fails', () => {
  for (const landed of [0, 1, 2]) {
    it(`answers proposals that are in the log as unknown, because the next start may find them there (${landed} of 2 landed)`, () => {
      const { clock, node, run, seen } = readyNode({ log: { delayMs: () => 5 } });
      run.log.failNext('write', broken, { landed });
      for (const name of ['a', 'b']) seen.propose(run, name);
      clock.runFor(2);
      seen.propose(run, 'joins later');
      seen.read(run, 'r');
      clock.runUntil(() => run.fatal.length > 0);
      seen.propose(run, 'too late');
      clock.runFor(200);

      expect(seen.kinds()).to.deep.equal(['a unknown', 'b unknown', 'joins later unknown', 'too late faulty']);
      expect(run.fatal).to.deep.equal([broken]);
      expect(run.driver.status()).to.include({ role: 'faulty', ready: false, leader: 0 });
      node.crash(run);
      expect(written(restart(node))).to.deep.equal(['a', 'b'].slice(0, landed));
    });
  }

  it('refuses proposals that are not yet in the log: they certainly never happen', () => {
    const { clock, node, run, seen } = readyNode();
    run.log.failNext('write', broken, { landed: 1 });
    seen.propose(run, 'a');
    clock.runUntil(() => node.disk.lastIndex === 2);
    seen.propose(run, 'queued');
    clock.runUntil(() => run.fatal.length > 0);
    expect(seen.kinds()).to.deep.equal(['a unknown', 'queued faulty']);
    node.crash(run);
    expect(written(restart(node))).to.deep.equal(['a']);
  });

  it('refuses waiting reads as faulty', () => {
    const { clock, node, run, seen } = readyNode();
    node.crash(run);
    const next = node.start();
    clock.runUntil(() => next.driver.status().role === 'leader');
    next.log.failNext('write', broken);
    seen.read(next, 'r');
    clock.runUntil(() => next.fatal.length > 0);
    expect(seen.reads.map(({ outcome }) => outcome)).to.deep.equal([{ kind: 'refused', reason: 'faulty' }]);
  });

  const causes: Readonly<Record<string, (node: ReturnType<typeof readyNode>) => void>> = {
    'a write': ({ run }) => run.log.failNext('write', broken),
    'a flush': ({ run }) => run.stateMachine.failNextFlush(broken),
    'a compaction': ({ run }) => run.log.failNext('compact', broken),
  };
  for (const [name, cause] of Object.entries(causes)) {
    it(`reports ${name} that failed once, and answers nothing as success after it`, () => {
      const ready = readyNode({ driver: { limits: { compactAfterEntries: 3, keepTrailingEntries: 1 } } });
      const { clock, run, seen } = ready;
      cause(ready);
      let applied = 0;
      for (let i = 0; run.fatal.length === 0; i++) {
        seen.propose(run, `p${i}`);
        clock.runFor(0.5);
        if (run.fatal.length === 0) applied = seen.kinds().filter((kind) => kind.endsWith('applied')).length;
      }
      clock.runFor(500);
      expect(run.fatal).to.deep.equal([broken]);
      expect(run.statuses.at(-1)).to.include({ role: 'faulty', ready: false });
      expect(seen.kinds().filter((kind) => kind.endsWith('applied'))).to.have.length(applied);
      const asked = new Set(seen.proposals.map((proposal) => proposal.name));
      expect(asked.size, 'each answered, once').to.equal(seen.proposals.length);
    });
  }

  it('stops when old entries cannot be read back at the start', () => {
    const { clock, node, run, seen } = readyNode({ stateMachine: { delayMs: () => 1_000_000 } });
    seen.propose(run, 'a');
    clock.runUntil(() => seen.proposals.length === 1);
    node.crash(run);
    const next = node.start();
    next.log.failNext('read', broken);
    clock.runUntil(() => next.fatal.length > 0);
    expect(next.fatal).to.deep.equal([broken]);
    expect(next.driver.status().role).to.equal('faulty');
  });

  it('stops when applying throws: that entry and the later ones are unknown', () => {
    const { clock, run, seen } = readyNode({
      stateMachine: {
        onApply: ({ index }) => {
          if (index === 3) throw broken;
        },
      },
    });
    for (const name of ['a', 'b', 'c']) seen.propose(run, name);
    clock.runUntil(() => run.fatal.length > 0);
    expect(seen.kinds()).to.deep.equal(['a applied', 'b unknown', 'c unknown']);
    expect(run.stateMachine.published.at(-1)).to.equal(2);
  });

  it('stops when a callback throws, rather than continue in an unknown state', () => {
    const { clock, run } = readyNode();
    run.driver.propose(new Uint8Array(1), () => {
      throw broken;
    });
    clock.runUntil(() => run.fatal.length > 0);
    expect(run.fatal).to.deep.equal([broken]);
  });

  it('reports to a caller that waits for the stop', () => {
    for (const operation of ['write', 'close'] satisfies LogOperation[]) {
      const { clock, run, seen } = readyNode();
      run.log.failNext(operation, broken);
      seen.propose(run, 'a');
      clock.runFor(0.5);
      const stopped: unknown[] = [];
      run.driver.stop((error) => stopped.push(error));
      clock.runUntil(() => stopped.length === 1);
      run.driver.stop((error) => stopped.push(error));
      clock.runUntil(() => stopped.length === 2);
      expect(stopped).to.deep.equal([broken, broken]);
      expect(run.fatal).to.deep.equal([broken]);
    }
  });
});
