import { expect } from 'chai';
import { bytes } from './observed.ts';
import { type Member, Trio } from './trio.ts';

/** Proposes an entry, and returns the list of its steps with its outcome. */
function observed({ driver }: Member, name: string): string[] {
  const steps: string[] = [];
  driver.propose(bytes(name), (outcome) => steps.push(outcome.kind === 'refused' ? outcome.reason : outcome.kind), {
    appended: (index, term) => steps.push(`appended ${index} in ${term}`),
    committed: () => steps.push('committed'),
  });
  return steps;
}

describe('the observer of a proposal', () => {
  it('is told when its entry is in the log and when it is committed, before the outcome', () => {
    const trio = new Trio();
    const leader = trio.leader();
    const { lastIndex, term } = leader.driver.status();
    const [first, second] = [observed(leader, 'a'), observed(leader, 'b')];
    trio.clock.runUntil(() => second.length === 3);
    expect(first).to.deep.equal([`appended ${lastIndex + 1} in ${term}`, 'committed', 'applied']);
    expect(second).to.deep.equal([`appended ${lastIndex + 2} in ${term}`, 'committed', 'applied']);
  });

  it('is not told of a commit that cannot happen', () => {
    const trio = new Trio();
    const leader = trio.leader();
    trio.passes = ({ from, to }) => from !== leader.id && to !== leader.id;
    const steps = observed(leader, 'a');
    trio.clock.runFor(200);
    expect(steps).to.have.length(1);
    expect(steps[0]).to.match(/^appended/);
  });

  it('is told nothing of a proposal that is refused', () => {
    const trio = new Trio();
    const leader = trio.leader();
    const follower = [...trio.members.values()].find(({ id }) => id !== leader.id);
    if (follower === undefined) throw new Error('there is no follower');
    const steps = observed(follower, 'a');
    trio.clock.runUntil(() => steps.length > 0);
    expect(steps).to.deep.equal(['notLeader']);
  });
});
