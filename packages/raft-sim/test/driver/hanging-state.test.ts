import { expect } from 'chai';
import { type Member, Trio } from './trio.ts';

const limits = { unflushedBytesMax: 4_000, memoryBytesMax: 16_000 };
const data = new Uint8Array(200);

/** Three nodes. On the nodes in `hanging`, every flush of the state takes a minute. */
function trioWith({ fitness = 'fit' as const, flushMs = 60_000 } = {}) {
  const hanging = new Set<number>();
  const trio = new Trio({
    flushDelayMs: (id) => (hanging.has(id) ? flushMs : 1),
    driver: { limits, fitness },
  });
  return { trio, hanging };
}

/** Proposes a little every ten ms until the condition holds; returns the outcomes. */
function writeUntil(trio: Trio, node: () => Member, condition: (answers: readonly string[]) => boolean): string[] {
  const answers: string[] = [];
  const goOn = (): void => {
    node().driver.propose(data, (outcome) => answers.push(outcome.kind === 'refused' ? outcome.reason : outcome.kind));
    if (!condition(answers)) trio.clock.after(10, goOn);
  };
  goOn();
  trio.clock.runUntil(() => condition(answers));
  return answers;
}

const leads = ({ driver }: Member): boolean => driver.status().role === 'leader';

describe('Driver, where the state store hangs', () => {
  it('a leader transfers leadership to a fit voter, and writes continue there', () => {
    const { trio, hanging } = trioWith();
    const leader = trio.leader();
    hanging.add(leader.id);
    writeUntil(
      trio,
      () => leader,
      () => trio.others(leader).some(leads),
    );
    const next = trio.leader();
    expect(next.id).not.to.equal(leader.id);
    const answers = writeUntil(
      trio,
      () => next,
      (soFar) => soFar.includes('applied'),
    );
    expect(answers).to.include('applied');
  });

  it('a leader without a fit voter stays, refuses writes at once, and takes them again when the store works again', () => {
    const { trio, hanging } = trioWith();
    const leader = trio.leader();
    for (const { driver } of trio.others(leader)) driver.setFitness('low');
    trio.clock.runFor(1_000);
    hanging.add(leader.id);
    const answers: string[] = [];
    answers.push(
      ...writeUntil(
        trio,
        () => leader,
        () => answers.includes('x') || leader.driver.consensus().lastIndex > 60,
      ),
    );
    trio.clock.runFor(4_000);
    expect(leads(leader)).to.equal(true);
    let refused = '';
    leader.driver.propose(data, (outcome) => {
      refused = outcome.kind === 'refused' ? outcome.reason : outcome.kind;
    });
    trio.clock.runFor(5);
    expect(refused).to.equal('stalled');
    let read = '';
    leader.driver.readIndex((outcome) => {
      read = outcome.kind === 'refused' ? outcome.reason : outcome.kind;
    });
    trio.clock.runFor(500);
    expect(read, 'a read that waits for entries to be applied').to.equal('stalled');
    hanging.clear();
    trio.clock.runFor(60_000);
    expect(leads(leader)).to.equal(true);
    expect(
      writeUntil(
        trio,
        () => leader,
        () => leader.driver.status().flushedIndex > 70,
      ),
    ).to.include('applied');
  });

  it('a leader stays leader if its flushes are slow but end, as during a compaction of its database', () => {
    const { trio, hanging } = trioWith({ flushMs: 2_000 });
    const leader = trio.leader();
    const { term } = leader.driver.status();
    hanging.add(leader.id);
    writeUntil(
      trio,
      () => leader,
      () => trio.clock.now() > 40_000,
    );
    expect(leader.driver.status()).to.include({ role: 'leader', term });
  });

  it('a leader stays leader if a flush takes long while few bytes wait for it', () => {
    const { trio, hanging } = trioWith({ flushMs: 20_000 });
    const leader = trio.leader();
    hanging.add(leader.id);
    leader.driver.propose(data, () => undefined);
    trio.clock.runFor(15_000);
    expect(leads(leader)).to.equal(true);
  });

  it('a follower takes no more entries than its memory limit allows, the others continue, and it catches up afterwards', () => {
    const { trio, hanging } = trioWith();
    const leader = trio.leader();
    const [follower] = trio.others(leader);
    if (follower === undefined) throw new Error('no follower');
    hanging.add(follower.id);
    const begunAt = follower.driver.status().lastIndex;
    writeUntil(
      trio,
      () => leader,
      () => leader.driver.status().flushedIndex > 600,
    );
    const held = follower.driver.consensus().lastIndex - begunAt;
    expect(held * data.length, 'bytes').to.be.within(limits.memoryBytesMax, 2 * limits.memoryBytesMax);
    expect(leads(leader)).to.equal(true);
    expect(leader.driver.peers().find(({ id }) => id === follower.id)).to.include({ active: true, fit: false });
    hanging.clear();
    const { lastIndex } = leader.driver.status();
    trio.clock.runUntil(() => follower.driver.status().flushedIndex >= lastIndex);
  });
});
