import type { ReplicationState } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { claimOf } from '../../src/roles/meeting.ts';
import { answerHello } from '../../src/sessions/answer-hello.ts';

const [set, a, b, c] = ['01', '0a', '0b', '0c'].map((digits) => digits.repeat(16)) as [string, string, string, string];
const successionKey = Buffer.alloc(32, 9);
const primary: ReplicationState = {
  ...{ role: 'primary', set, local: [], index: 41, offset: 0, seen: 2 },
  epochs: [
    { number: 1, id: a, start: 5 },
    { number: 2, id: b, start: 40 },
  ],
};
const answer = (
  cursor: { number: number; id: string; index: number } | undefined,
  state = primary,
  { isKept = true, wantsWholeState = false, key = successionKey as Uint8Array | 'none' } = {},
) => {
  const { proof } = cursor === undefined || key === 'none' ? {} : claimOf(set, cursor, key);
  const facts = { state, level: 3, continuesFrom: () => isKept, successionKey };
  return answerHello({ kind: 'hello', set, cursor, wantsWholeState, level: 3, proof }, facts);
};

describe('the answer to a hello', () => {
  it('resumes in the present epoch, and at a point of the history', () => {
    for (const cursor of [
      { number: 2, id: b, index: 60 },
      { number: 1, id: a, index: 40 },
      { number: 1, id: a, index: 20 },
    ])
      expect(answer(cursor)).to.deep.equal({ kind: 'resume', from: cursor });
  });

  it('sends the whole state to a secondary without one, or behind the outcomes that are kept', () => {
    expect(answer(undefined)).to.deep.equal({ kind: 'resynchronize', diverged: false });
    expect(answer({ number: 2, id: b, index: 50 }, primary, { isKept: false })).to.deep.equal({
      kind: 'resynchronize',
      diverged: false,
    });
  });

  it('sends the whole state to a secondary that asks for it, unless its epoch ends this one', () => {
    const asked = { wantsWholeState: true };
    expect(answer({ number: 2, id: b, index: 60 }, primary, asked)).to.deep.equal({ kind: 'resynchronize', diverged: false });
    expect(answer({ number: 3, id: c, index: 60 }, primary, asked)).to.include({ kind: 'superseded' });
  });

  it('sends the whole state to a cluster that has something else, and says so', () => {
    expect(answer({ number: 1, id: a, index: 41 }), 'after the promotion').to.deep.equal({
      kind: 'resynchronize',
      diverged: true,
    });
    expect(answer({ number: 1, id: c, index: 7 }), 'another epoch').to.deep.equal({ kind: 'resynchronize', diverged: true });
  });

  it('is superseded by a higher epoch and by a rival', () => {
    expect(answer({ number: 3, id: c, index: 7 })).to.deep.include({ kind: 'superseded' });
    expect(answer({ number: 2, id: c, index: 7 })).to.deep.include({ kind: 'superseded' });
  });

  it('refuses a later epoch that is not proven, or that no set can have reached', () => {
    const unproven = { kind: 'refuse', reason: 'unproven' };
    for (const number of [2, 3, 2 ** 47 - 1])
      for (const key of ['none', Buffer.alloc(32, 1)] as const)
        expect(answer({ number, id: c, index: 7 }, primary, { key }), `${number}`).to.deep.equal(unproven);
    expect(answer({ number: 65_538, id: c, index: 7 })).to.include({ kind: 'superseded' });
    expect(answer({ number: 65_539, id: c, index: 7 })).to.deep.equal(unproven);
    expect(answer({ number: 3, id: c, index: 7 }, { ...primary, role: 'demoted' }, { key: 'none' })).to.include({
      kind: 'resynchronize',
    });
  });

  it('refuses other sets, and on clusters that send nothing', () => {
    const facts = { state: primary, level: 3, continuesFrom: () => true, successionKey };
    expect(answerHello({ kind: 'hello', set: a, cursor: undefined, wantsWholeState: false, level: 3 }, facts)).to.include({
      reason: 'other_set',
    });
    expect(answer(undefined, { ...primary, role: 'secondary' })).to.include({ reason: 'not_primary' });
    expect(answer(undefined, { ...primary, role: 'superseded' })).to.include({ reason: 'superseded' });
    expect(answer({ number: 2, id: b, index: 60 }, { ...primary, role: 'demoted' }), 'until it has the last index').to.include({
      kind: 'resume',
    });
  });

  it('sends nothing to a secondary at a lower feature level', () => {
    const at = { number: 2, id: b, index: 60 };
    for (const [secondaryLevel, kind] of [
      [3, 'refuse'],
      [4, 'resume'],
      [5, 'resume'],
    ] as const)
      for (const cursor of [at, undefined]) {
        const answered = answerHello(
          { kind: 'hello', set, cursor, wantsWholeState: false, level: secondaryLevel },
          { state: primary, level: 4, continuesFrom: () => true, successionKey },
        );
        expect(answered.kind).to.equal(kind === 'resume' && cursor === undefined ? 'resynchronize' : kind);
      }
  });
});
