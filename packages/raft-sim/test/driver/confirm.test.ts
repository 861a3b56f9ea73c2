import type { ConfirmOutcome, Message, NodeId } from '@transitd/raft-core';
import { expect } from 'chai';
import { bytes } from './observed.ts';
import { type Member, Trio } from './trio.ts';

function asked({ driver }: Member, to: NodeId, index: number): string[] {
  const outcomes: string[] = [];
  driver.confirm(to, index, (outcome: ConfirmOutcome) =>
    outcomes.push(outcome.kind === 'applied' ? `applied ${outcome.index}` : outcome.reason),
  );
  return outcomes;
}

/** Three nodes, of which one writes an entry that `behind` has not got. */
function oneBehind() {
  const trio = new Trio();
  const leader = trio.leader();
  trio.clock.runFor(300);
  const [behind, other] = trio.others(leader);
  if (behind === undefined || other === undefined) throw new Error('three nodes');
  const lacks = ({ type, to }: Message): boolean => to === behind.id && (type === 'Append' || type === 'Commit');
  trio.passes = (message) => !lacks(message);
  let index = 0;
  leader.driver.propose(bytes('a'), (outcome) => {
    if (outcome.kind === 'applied') index = outcome.index;
  });
  trio.clock.runUntil(() => index > 0);
  return { trio, leader, behind, other, index };
}

describe('Driver.confirm', () => {
  it('is answered by each peer once it has applied the entry', () => {
    const { trio, leader, behind, other, index } = oneBehind();
    const [late, soon] = [asked(leader, behind.id, index), asked(leader, other.id, index)];
    trio.clock.runFor(200);
    expect([late, soon]).to.deep.equal([[], [`applied ${index}`]]);
    trio.passes = () => true;
    trio.clock.runUntil(() => late.length > 0);
    expect(late).to.deep.equal([`applied ${index}`]);
    expect(behind.driver.status().appliedIndex).to.equal(index);
  });

  it('is unanswered after an election timeout, at once when the peer cannot be reached, and may be asked again', () => {
    const { trio, leader, behind, index } = oneBehind();
    const outcomes = asked(leader, behind.id, index);
    trio.clock.runFor(990);
    expect(outcomes).to.deep.equal([]);
    trio.clock.runFor(80);
    expect(outcomes).to.deep.equal(['unanswered']);
    const again = asked(leader, behind.id, index);
    trio.clock.runFor(10);
    leader.receiver?.unreachable(behind.id);
    trio.clock.runFor(1);
    expect(again).to.deep.equal(['unanswered']);
    trio.passes = () => true;
    const last = asked(leader, behind.id, index);
    trio.clock.runUntil(() => last.length > 0);
    expect(last).to.deep.equal([`applied ${index}`]);
  });

  it('is not answered by a peer that has lost what it had applied, until it has applied it again', () => {
    const trio = new Trio({ flushDelayMs: () => 100_000 });
    const leader = trio.leader();
    const [peer] = trio.others(leader);
    if (peer === undefined) throw new Error('three nodes');
    let index = 0;
    leader.driver.propose(bytes('a'), (outcome) => {
      if (outcome.kind === 'applied') index = outcome.index;
    });
    trio.clock.runUntil(() => index > 0 && peer.driver.status().appliedIndex === index);
    trio.crash(peer.id);
    trio.passes = ({ to, type }) => !(to === peer.id && type !== 'Confirm');
    const restarted = trio.start(peer.id, [1, 2, 3]);
    expect(restarted.driver.status().appliedIndex).to.be.lessThan(index);
    const outcomes = asked(leader, peer.id, index);
    trio.clock.runFor(500);
    const appliedThen = restarted.driver.status().appliedIndex;
    expect(outcomes.length === 0, `applied ${appliedThen} of ${index}`).to.equal(appliedThen < index);
    trio.passes = () => true;
    trio.clock.runUntil(() => outcomes.length > 0);
    expect(outcomes).to.deep.equal([`applied ${index}`]);
  });

  it('leaves in one transmission with the entries of its turn', () => {
    const trio = new Trio();
    const leader = trio.leader();
    trio.clock.runFor(300);
    const [peer] = trio.others(leader);
    const { appliedIndex } = leader.driver.status();
    trio.sent.length = 0;
    leader.driver.propose(bytes('a'), () => undefined);
    const outcomes = asked(leader, peer?.id ?? 0, appliedIndex);
    trio.clock.runUntil(() => outcomes.length > 0);
    const own = trio.sent.filter(({ from, type }) => from === leader.id && type !== 'Heartbeat');
    expect(own.slice(0, 3).map(({ type }) => type)).to.deep.equal(['Append', 'Append', 'Confirm']);
  });

  it('is refused by a node that has stopped, and ends when the node stops', () => {
    const { trio, leader, behind, index } = oneBehind();
    const outcomes = asked(leader, behind.id, index);
    trio.clock.runFor(10);
    leader.driver.stop(() => undefined);
    trio.clock.runFor(10);
    expect(outcomes).to.deep.equal(['stopped']);
    const after = asked(leader, behind.id, index);
    trio.clock.runFor(1);
    expect(after).to.deep.equal(['stopped']);
  });

  it('of a node that was removed is answered by the notice of its removal alone', () => {
    const trio = new Trio({ ids: [] });
    const removed = new Set<NodeId>();
    for (const id of [1, 2, 3]) trio.start(id, [1, 2, 3], { removedAt: (peer) => (removed.has(peer) ? 1 : undefined) });
    const leader = trio.leader();
    const [gone] = trio.others(leader);
    if (gone === undefined) throw new Error('three nodes');
    removed.add(gone.id);
    trio.sent.length = 0;
    const outcomes = asked(gone, leader.id, 1);
    trio.clock.runFor(50);
    expect(outcomes).to.deep.equal([]);
    expect(trio.sent.filter(({ from, to }) => from === leader.id && to === gone.id).map(({ type }) => type)).to.include(
      'Removed',
    );
    expect(trio.sent.map(({ type }) => type)).not.to.include('ConfirmResp');
  });
});
