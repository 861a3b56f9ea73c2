import { expect } from 'chai';
import { Trace } from '../../../src/cluster/checks/trace.ts';
import { configOf } from '../../../src/cluster/config/config.ts';
import { Cluster } from '../../../src/cluster/world/cluster.ts';

/** Three voters, one of them lost permanently, and a learner. */
function threeAndALearner() {
  const config = { ...configOf(1, 'driver', 0), nodes: 3, schedule: [] };
  const cluster = new Cluster(config, new Trace());
  const learner = cluster.join();
  const [one, two, three] = cluster.members;
  if (one === undefined || two === undefined || three === undefined) throw new Error('fewer than three members');
  three.fate = 'wiped';
  cluster.crash(three);
  const nobody = { votersOutgoing: [], learnersNext: [], autoLeave: false, context: new Uint8Array(0) };
  const conf = { ...nobody, voters: [1, 2, 3], learners: [learner.id] };
  return { operator: cluster.operator, conf, learner, one, two };
}

describe('the operator of a simulated cluster', () => {
  it('promotes a learner while a quorum of healthy voters remains', () => {
    const { operator, conf, learner } = threeAndALearner();
    expect(operator.mayPromote(learner.id, conf)).to.equal(true);
  });

  it('does not promote a learner that was lost after it caught up: with the voters lost before, too few would remain', () => {
    const { operator, conf, learner } = threeAndALearner();
    learner.isDamaged = true;
    expect(operator.mayPromote(learner.id, conf)).to.equal(false);
  });

  it('does not let a second voter be lost', () => {
    const { operator, two } = threeAndALearner();
    expect(operator.canLose(two)).to.equal(false);
  });
});
