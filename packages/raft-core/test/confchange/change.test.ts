import { expect } from 'chai';
import fc from 'fast-check';
import { changeConf } from '../../src/confchange/change.ts';
import { flawOf, isJoint, isVoter, soleVoter } from '../../src/confchange/conf-state.ts';
import type { ConfChange, ConfState, MemberChange } from '../../src/types.ts';

const conf = (voters: number[], more: Partial<ConfState> = {}): ConfState => ({ ...soleVoter(1), voters, ...more });
const to = (part: MemberChange['to'], ...ids: number[]): MemberChange[] => ids.map((id) => ({ id, to: part }));
const change = (...members: MemberChange[]): ConfChange => ({ kind: 'change', members });
const joint = conf([1, 4], { votersOutgoing: [1, 2, 3], learners: [5], learnersNext: [2], autoLeave: true });

describe('changeConf', () => {
  for (const { name, from, by, expected } of [
    { name: 'adds one voter at once', from: conf([1]), by: change(...to('voter', 2)), expected: conf([1, 2]) },
    {
      name: 'adds learners at once, any number',
      from: conf([1]),
      by: change(...to('learner', 3, 2)),
      expected: conf([1], { learners: [2, 3] }),
    },
    {
      name: 'promotes one learner at once',
      from: conf([1, 2], { learners: [3] }),
      by: change(...to('voter', 3)),
      expected: conf([1, 2, 3]),
    },
    {
      name: 'demotes one voter at once',
      from: conf([1, 2, 3]),
      by: change(...to('learner', 3)),
      expected: conf([1, 2], { learners: [3] }),
    },
    { name: 'removes one voter at once', from: conf([1, 2, 3]), by: change(...to('none', 1)), expected: conf([2, 3]) },
    {
      name: 'replaces a voter through a joint configuration, since one voter added and one removed are two changes',
      from: conf([1, 2, 3]),
      by: change(...to('none', 3), ...to('voter', 4)),
      expected: conf([1, 2, 4], { votersOutgoing: [1, 2, 3], autoLeave: true }),
    },
    {
      name: 'keeps a demoted voter in the outgoing half until that half is gone',
      from: conf([1, 2, 3]),
      by: change(...to('learner', 2, 5), ...to('none', 3), ...to('voter', 4)),
      expected: joint,
    },
    {
      name: 'leaves a joint configuration, after which the demoted voter is a learner',
      from: joint,
      by: { kind: 'leave' as const },
      expected: conf([1, 4], { learners: [2, 5] }),
    },
    {
      name: 'changes the context alone',
      from: conf([1]),
      by: { kind: 'change' as const, members: [], context: Uint8Array.of(7) },
      expected: conf([1], { context: Uint8Array.of(7) }),
    },
    {
      name: 'stays joint until it is told to leave, if that was requested',
      from: conf([1]),
      by: { kind: 'change' as const, members: to('voter', 2, 3), autoLeave: false },
      expected: conf([1, 2, 3], { votersOutgoing: [1] }),
    },
  ]) {
    it(name, () => {
      expect(changeConf(from, by)).to.deep.equal({ conf: expected });
    });
  }

  for (const { name, from, by } of [
    { name: 'the removal of all voters', from: conf([1, 2]), by: change(...to('none', 1, 2)) },
    { name: 'any change but leaving while joint', from: joint, by: change(...to('voter', 6)) },
    { name: 'leaving a configuration that is not joint', from: conf([1]), by: { kind: 'leave' as const } },
    { name: 'a member twice', from: conf([1]), by: change({ id: 2, to: 'voter' }, { id: 2, to: 'learner' }) },
    { name: 'a change without effect', from: conf([1, 2]), by: change(...to('voter', 2)) },
    { name: 'an invalid id', from: conf([1]), by: change(...to('voter', 0)) },
  ]) {
    it(`refuses ${name}`, () => {
      expect(changeConf(from, by)).to.have.property('flaw');
    });
  }

  const subsets = (of: readonly number[]): number[][] =>
    Array.from({ length: 2 ** of.length }, (_, bits) => of.filter((_id, i) => (bits & (1 << i)) !== 0));
  const everyone = [1, 2, 3, 4, 5, 6];
  const isQuorum = ({ voters, votersOutgoing }: ConfState, members: readonly number[]): boolean =>
    [voters, votersOutgoing].every(
      (part) => part.length === 0 || part.filter((id) => members.includes(id)).length * 2 > part.length,
    );

  it('moves only between configurations whose quorums always overlap, and whose members are as requested', () => {
    const member = fc.record({ id: fc.constantFrom(...everyone), to: fc.constantFrom('voter', 'learner', 'none') });
    const changes = fc.uniqueArray(member, { selector: ({ id }) => id, minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(changes, { maxLength: 6 }), (steps) => {
        let now = conf([1, 2, 3]);
        for (const members of steps) {
          for (const next of [change(...members), { kind: 'leave' as const }]) {
            const changed = changeConf(now, next);
            if ('flaw' in changed) continue;
            expect(flawOf(changed.conf)).to.equal(undefined);
            const before = subsets(everyone).filter((set) => isQuorum(now, set));
            const after = subsets(everyone).filter((set) => isQuorum(changed.conf, set));
            for (const one of before) {
              for (const other of after) expect(one.some((id) => other.includes(id))).to.equal(true);
            }
            now = changed.conf;
          }
          expect(isJoint(now)).to.equal(false);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('gives every member its requested role once the joint configuration is left', () => {
    const parts = fc.array(fc.constantFrom<MemberChange['to']>('voter', 'learner', 'none'), { minLength: 6, maxLength: 6 });
    fc.assert(
      fc.property(parts, (wanted) => {
        const members = everyone.map((id, i) => ({ id, to: wanted[i] ?? 'none' }));
        const changed = changeConf(conf([1, 2, 3], { learners: [4] }), change(...members));
        if ('flaw' in changed) return;
        const left = changeConf(changed.conf, { kind: 'leave' });
        const end = 'conf' in left ? left.conf : changed.conf;
        for (const { id, to: part } of members) {
          expect(isVoter(end, id), `${id} ${part}`).to.equal(part === 'voter');
          expect(end.learners.includes(id), `${id} ${part}`).to.equal(part === 'learner');
        }
      }),
    );
  });
});
