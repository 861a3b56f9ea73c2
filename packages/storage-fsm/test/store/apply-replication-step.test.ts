import { expect } from 'chai';
import fc from 'fast-check';
import { applyReplicationStep } from '../../src/store/apply-replication-step.ts';
import { decodeCommand, encodeCommand } from '../../src/store/codec.ts';
import { emptyDigest } from '../../src/store/digest.ts';
import {
  cursorOf,
  decodeReplicationState,
  encodeReplicationState,
  type ReplicationState,
  recoveredReplicationState,
} from '../../src/store/replication-state.ts';
import type { ReplicationStep } from '../../src/store/replication-step.ts';
import { applyRestoreStep } from '../../src/store/restore-step.ts';
import { decodeSpaces, encodeSpaces, noSpaces, placeOf, type Spaces, spaceMax } from '../../src/store/spaces.ts';
import { someEpochs, someForeign, someId } from './replication-arbitraries.ts';

const set = 'ab'.repeat(16);
const attempt = { id: 'a', space: 1, chunks: 1, records: 0, digest: emptyDigest };

/** Makes steps that fit a state, with any numbers that another cluster may send. */
const someMove = fc.record({
  kind: fc.constantFrom('establish', 'attach', 'follow', 'adopt', 'swap', 'promote', 'leave', 'demote', 'supersede', 'disable'),
  number: someForeign,
  id: someId,
  epochs: someEpochs,
  gap: fc.nat(5),
});
type Move = typeof someMove extends fc.Arbitrary<infer T> ? T : never;

function stepOf({ kind, number, id, epochs }: Move, state: ReplicationState | undefined): ReplicationStep {
  const from = (state && cursorOf(state)) ?? { number: 1, id: set, index: 0 };
  const none = { writes: [], local: [], valuesWritten: 0 };
  switch (kind) {
    case 'establish':
      return { kind: 'establish', set, id, local: [] };
    case 'attach':
      return { kind: 'attach', set, local: [] };
    case 'follow':
      return { kind: 'follow', from, to: number, ...none };
    case 'adopt':
      return { kind: 'adopt', from, epochs: [{ number: from.number, id: from.id, start: 0 }, ...epochs.slice(-1)] };
    case 'swap':
      return {
        ...{ kind: 'swap', attempt: attempt.id, records: 0, digest: emptyDigest, epochs, index: number },
        ...{ local: [], localReadAt: 0, valuesWritten: 0 },
      };
    case 'promote':
      return { kind: 'promote', from, id, writes: [] };
    case 'leave':
      return { kind: 'leave', from, writes: [] };
    case 'demote':
      return { kind: 'demote', from: { number: from.number, id: from.id } };
    case 'supersede':
      return { kind: 'supersede', by: { number: Math.max(number, 1), id } };
    default:
      return { kind: 'disable' };
  }
}

describe('the steps of replication', () => {
  it('store only states that can be read again, and leave room to be promoted, whatever numbers another cluster sends', () => {
    let promoted = 0;
    fc.assert(
      fc.property(fc.array(someMove, { maxLength: 12 }), (moves) => {
        let state: ReplicationState | undefined;
        let index = 0;
        for (const move of moves) {
          index += 1 + move.gap;
          let replication: ReplicationStep | undefined;
          try {
            const command = decodeCommand(encodeCommand({ replication: stepOf(move, state) }));
            replication = 'replication' in command ? command.replication : undefined;
          } catch (error) {
            expect(error, 'a step that cannot be proposed').to.be.instanceOf(TypeError);
          }
          if (replication === undefined) continue;
          const spaces = { ...noSpaces, nextSpace: 2, attempt };
          const effect = applyReplicationStep(replication, { state, spaces, index, revisionOf: () => 0 });
          if (effect === 'conflict') {
            expect(move.kind === 'promote' && state?.role === 'superseded', 'a forced promotion is always possible').to.equal(
              false,
            );
            continue;
          }
          state = effect.state ?? state;
          if (state === undefined) continue;
          if (move.kind === 'promote') promoted += 1;
          expect(decodeReplicationState(encodeReplicationState(state))).to.deep.equal(state);
          expect(index + state.offset).to.be.below(2 ** 48);
        }
      }),
      { numRuns: 3_000 },
    );
    expect(promoted).to.be.above(50);
  });

  it('are refused, not encoded, with numbers that no cluster may send', () => {
    const by = { number: 2 ** 47, id: set };
    for (const replication of [
      { kind: 'supersede' as const, by },
      { kind: 'adopt' as const, from: { ...by, number: 1, index: 0 }, epochs: [{ ...by, start: 0 }] },
      { kind: 'follow' as const, from: { ...by, number: 1, index: 0 }, to: 2 ** 47, writes: [], local: [], valuesWritten: 0 },
      {
        ...{ kind: 'stage' as const, attempt: 'a', chunk: 0 },
        records: [{ path: 'p', value: Buffer.of(1), revision: 2 ** 47 }],
      },
    ])
      expect(() => encodeCommand({ replication }), replication.kind).to.throw(TypeError);
  });

  it('leave a state that a recovery reads, although a node refuses its record', () => {
    const epochs = [1, 2 ** 48].map((number) => ({ number, id: set, start: 0 }));
    const record = { format: 1, role: 'primary', set, local: [], epochs, index: 7, offset: 3, seen: 2 ** 48 };
    const bytes = Buffer.from(JSON.stringify(record));
    expect(() => decodeReplicationState(bytes)).to.throw('the replication record is malformed');
    const state = recoveredReplicationState(bytes);
    expect(state).to.deep.equal({ role: 'disabled', set, local: [], epochs: [], index: 0, offset: 3, seen: 0 });
    expect(recoveredReplicationState(Buffer.from('no JSON'))).to.include({ role: 'disabled', offset: 0 });
    expect(decodeReplicationState(encodeReplicationState(state))).to.deep.equal(state);
    expect(() => encodeReplicationState({ ...state, seen: 2 ** 48 })).to.throw(TypeError);
  });

  it('bound the local prefixes of a state as those of a step', () => {
    const state: ReplicationState = { role: 'disabled', set, local: [], epochs: [], index: 0, offset: 0, seen: 0 };
    for (const local of [Array.from({ length: 65 }, (_, i) => `p${i}/`), ['p'.repeat(129)], ['\ud800']]) {
      expect(() => encodeReplicationState({ ...state, local }), 'a state').to.throw(TypeError);
      const replication = { kind: 'attach' as const, set, local };
      expect(() => encodeCommand({ replication }), 'a step').to.throw(TypeError);
    }
  });
});

describe('staging in a new space', () => {
  const state: ReplicationState = { role: 'secondary', set, local: [], epochs: [], index: 0, offset: 0, seen: 0 };
  const stage = { kind: 'stage' as const, chunk: 0, records: [{ path: 'p', value: Buffer.of(1), revision: 1 }] };
  const place = { state, index: 1, revisionOf: () => 0 };
  const ways = {
    'of a restore': (attempt: string, spaces: Spaces) => applyRestoreStep({ ...stage, attempt }, spaces),
    'of replication': (attempt: string, spaces: Spaces) => applyReplicationStep({ ...stage, attempt }, { ...place, spaces }),
  };
  for (const [name, apply] of Object.entries(ways))
    it(`${name} stores records and spaces that are read again, up to the last space, and is refused after it`, () => {
      let spaces: Spaces = { ...noSpaces, nextSpace: spaceMax - 2 };
      for (const attempt of ['a', 'b', 'c']) {
        const effect = apply(attempt, spaces);
        if (effect === 'conflict' || effect.spaces === undefined) return expect.fail(`${attempt} is refused`);
        spaces = decodeSpaces(encodeSpaces(effect.spaces));
        expect(spaces).to.deep.equal(effect.spaces);
        expect(effect.writes.map((write) => placeOf(write.name))).to.deep.equal([{ space: spaces.attempt?.space, path: 'p' }]);
      }
      expect(spaces.attempt?.space).to.equal(spaceMax);
      expect(apply('d', spaces)).to.equal('conflict');
      expect(() => decodeSpaces(encodeSpaces({ ...spaces, nextSpace: spaceMax + 2 }))).to.throw('the spaces record is malformed');
    });
});
