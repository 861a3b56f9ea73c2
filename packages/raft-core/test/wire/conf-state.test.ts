import { expect } from 'chai';
import fc from 'fast-check';
import { soleVoter } from '../../src/confchange/conf-state.ts';
import type { ConfState } from '../../src/types.ts';
import { CodecError } from '../../src/wire/codec-error.ts';
import { decodeConfState, encodeConfState } from '../../src/wire/conf-state.ts';

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const bytes = (value: string): Uint8Array => new TextEncoder().encode(value);

/** Valid configurations: members distributed among the parts. */
const configuration: fc.Arbitrary<ConfState> = fc
  .record({
    ids: fc.uniqueArray(fc.integer({ min: 1, max: 2 ** 48 - 1 }), { minLength: 1, maxLength: 12 }),
    parts: fc.array(fc.nat(3), { minLength: 12, maxLength: 12 }),
    joint: fc.boolean(),
    context: fc.uint8Array({ maxLength: 40 }),
  })
  .map(({ ids, parts, joint, context }) => {
    const part = (...wanted: number[]) =>
      ids.filter((_, i) => wanted.includes(i === 0 ? 0 : (parts[i] ?? 0))).sort((a, b) => a - b);
    const voters = part(0);
    if (!joint) return { ...soleVoter(1), voters, learners: part(1, 2, 3), context };
    return { voters, votersOutgoing: part(0, 2), learners: part(1), learnersNext: part(2), autoLeave: true, context };
  });

describe('decodeConfState', () => {
  it('returns what was encoded, in ASCII', () => {
    fc.assert(
      fc.property(configuration, (conf) => {
        const encoded = encodeConfState(conf);
        expect(encoded.every((byte) => byte < 0x80)).to.equal(true);
        expect(decodeConfState(encoded)).to.deep.equal(conf);
      }),
    );
  });

  it('reads the written form, which must not change', () => {
    const written =
      '{"version":1,"voters":[5],"votersOutgoing":[],"learners":[],"learnersNext":[],"autoLeave":false,"context":"00ff"}';
    const conf = { ...soleVoter(5), context: Uint8Array.from([0, 255]) };
    expect(text(encodeConfState(conf))).to.equal(written);
    expect(decodeConfState(bytes(written))).to.deep.equal(conf);
  });

  const good: Record<string, unknown> = JSON.parse(text(encodeConfState(soleVoter(5))));
  for (const [name, wrong] of Object.entries({
    'a later version': { ...good, version: 2 },
    'a missing field': { ...good, context: undefined },
    'an unknown field': { ...good, more: 1 },
    'a name for an id': { ...good, voters: ['5'] },
    'an id of 0': { ...good, voters: [0] },
    'an id beyond 48 bits': { ...good, voters: [2 ** 48] },
    'a fraction': { ...good, voters: [1.5] },
    'ids out of order': { ...good, voters: [5, 4] },
    'an id twice': { ...good, voters: [5, 5] },
    'a voter who is a learner': { ...good, learners: [5] },
    'learners without a voter': { ...good, voters: [], learners: [5] },
    'a next learner who is not an outgoing voter': { ...good, learnersNext: [6] },
    'autoLeave in a configuration that is not joint': { ...good, autoLeave: true },
    'autoLeave as a number': { ...good, autoLeave: 1 },
    'no list': { ...good, voters: 5 },
    'half a byte': { ...good, context: '0' },
    'upper-case hex': { ...good, context: 'FF' },
    'an array': [],
    null: null,
  })) {
    it(`refuses ${name}`, () => {
      expect(() => decodeConfState(bytes(JSON.stringify(wrong)))).to.throw(CodecError);
    });
  }

  it('refuses any other bytes with a CodecError and nothing else', () => {
    fc.assert(fc.property(fc.uint8Array(), (data) => void expect(() => decodeConfState(data)).to.throw(CodecError)));
    const encoded = encodeConfState(soleVoter(5));
    for (let length = 0; length < encoded.length; length++) {
      expect(() => decodeConfState(encoded.subarray(0, length))).to.throw(CodecError);
    }
  });
});
