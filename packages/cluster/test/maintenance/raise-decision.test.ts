import { expect } from 'chai';
import { AutomaticRaise, highestLevel, holdingUp, judgeRaise, type MemberLevels } from '../../src/maintenance/raise-decision.ts';

const member = (name: string, oldest: number, newest: number): MemberLevels => ({ name, levels: { oldest, newest } });
const mixed = [member('n1', 1, 3), member('n2', 1, 2), member('n3', 1, 3)];

describe('raising the feature level', () => {
  it('goes to the highest level that every member supports, unless the operator names one', () => {
    expect(judgeRaise({ wanted: undefined, present: 1 }, mixed)).to.deep.equal({ to: 2 });
    expect(judgeRaise({ wanted: 2, present: 1 }, mixed)).to.deep.equal({ to: 2 });
    expect(judgeRaise({ wanted: 3, present: 1 }, [member('n1', 1, 3), member('n2', 2, 4)])).to.deep.equal({ to: 3 });
  });

  it('is refused while a member does not support the level, and names that member', () => {
    expect(judgeRaise({ wanted: 3, present: 1 }, mixed)).to.deep.equal({
      refused:
        'these members have not announced that they support feature level 3: n2 (levels 1 to 2). Upgrade or remove them first',
    });
    expect(judgeRaise({ wanted: 2, present: 1 }, [member('n1', 1, 2), member('old', 1, 1)])).to.have.property('refused');
  });

  it('is refused below the present level, and changes nothing at it', () => {
    expect(judgeRaise({ wanted: 1, present: 2 }, mixed)).to.deep.equal({
      refused: 'the cluster is at feature level 2 already, and the level never falls',
    });
    expect(judgeRaise({ wanted: 2, present: 2 }, mixed)).to.deep.equal({ to: 2 });
    expect(judgeRaise({ wanted: undefined, present: 2 }, mixed)).to.deep.equal({ to: 2 });
  });

  it('skips a level that no member needs', () => {
    expect(highestLevel([member('n1', 1, 4)], 1)).to.equal(4);
    expect(highestLevel([member('n1', 1, 1), member('n2', 1, 9)], 1)).to.equal(1);
  });
});

describe('the members that hold up the next level', () => {
  it('are those that do not support it, if another member does', () => {
    expect(holdingUp([member('n1', 1, 3), member('n2', 1, 1)], 1).map(({ name }) => name)).to.deep.equal(['n2']);
    expect(holdingUp([member('n1', 1, 3), member('n2', 1, 2)], 1)).to.deep.equal([]);
  });

  it('are none at the newest level that any member supports', () => {
    expect(holdingUp([member('n1', 1, 2), member('n2', 1, 2)], 2)).to.deep.equal([]);
  });
});

describe('raising the feature level by itself', () => {
  const both = [member('n1', 1, 2), member('n2', 1, 2)];
  const one = [member('n1', 1, 2), member('n2', 1, 1)];

  it('happens once all members have supported a higher level for the configured time', () => {
    const automatic = new AutomaticRaise(1000);
    expect(automatic.due(one, 1, 0)).to.equal(undefined);
    expect(automatic.due(both, 1, 5000)).to.equal(undefined);
    expect(automatic.due(both, 1, 5999)).to.equal(undefined);
    expect(automatic.due(both, 1, 6000)).to.equal(2);
    expect(automatic.due(both, 2, 7000), 'at the level already').to.equal(undefined);
  });

  it('starts the time again when a member goes back, and with a new leader', () => {
    const automatic = new AutomaticRaise(1000);
    automatic.due(both, 1, 0);
    expect(automatic.due(one, 1, 900)).to.equal(undefined);
    expect(automatic.due(both, 1, 1000)).to.equal(undefined);
    expect(automatic.due(both, 1, 1999)).to.equal(undefined);
    automatic.leadershipBegins();
    expect(automatic.due(both, 1, 2000)).to.equal(undefined);
    expect(automatic.due(both, 1, 3000)).to.equal(2);
  });

  it('never happens with the default time of 0', () => {
    const automatic = new AutomaticRaise(0);
    for (const nowMs of [0, 1e9]) expect(automatic.due(both, 1, nowMs)).to.equal(undefined);
  });
});
