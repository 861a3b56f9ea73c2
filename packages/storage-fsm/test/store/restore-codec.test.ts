import { CodecError } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import { decodeCommand, encodeCommand, transactionBytesMax } from '../../src/store/codec.ts';
import type { RestoreStep } from '../../src/store/restore-step.ts';
import { decodeSpaces, encodeSpaces, placeOf, rerouted, type Spaces, spaceOf } from '../../src/store/spaces.ts';
import { somePath } from './arbitraries.ts';

const encoded = (restore: RestoreStep): Buffer => encodeCommand({ restore });
const hex = (step: RestoreStep): unknown =>
  step.kind === 'stage'
    ? { ...step, records: step.records.map(({ path, value }) => [path, Buffer.from(value).toString('hex')]) }
    : step;

const attempt = fc.stringMatching(/^[0-9A-Za-z-]{1,64}$/);
const someStep: fc.Arbitrary<RestoreStep> = fc.oneof(
  fc.record({
    kind: fc.constant('stage' as const),
    attempt,
    chunk: fc.nat(2 ** 31 - 1),
    records: fc.uniqueArray(fc.record({ path: somePath, value: fc.uint8Array({ maxLength: 20 }) }), {
      selector: ({ path }) => path,
      maxLength: 4,
    }),
  }),
  fc.record({
    kind: fc.constant('swap' as const),
    attempt,
    records: fc.nat(),
    digest: fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
    valuesWritten: fc.nat(),
    keep: fc.array(fc.constantFrom('a/', 'é', 'core/x'), { maxLength: 3 }),
  }),
  fc.record({ kind: fc.constant('abandon' as const), attempt }),
  fc.record({
    kind: fc.constant('sweep' as const),
    names: fc.array(fc.constantFrom('a', 'b/é', '\u000200000007/a'), { maxLength: 3 }),
  }),
);

describe('restore step codec', () => {
  it('gives back what was encoded', () => {
    fc.assert(
      fc.property(someStep, (step) => {
        const command = decodeCommand(encoded(step));
        expect('restore' in command && hex(command.restore)).to.deep.equal(hex(step));
      }),
    );
  });

  for (const [step, bytes] of [
    [
      { kind: 'stage', attempt: 'a-1', chunk: 2, records: [{ path: 'é', value: Buffer.from('beef', 'hex') }] },
      '02 01 0003612d31 00000002 00000001 0002c3a9 00000002 beef',
    ],
    [
      { kind: 'swap', attempt: 'x', records: 1, digest: 255n, valuesWritten: 3, keep: ['c/'] },
      `02 02 000178 000000000001 ${'ff'.padStart(64, '0')} 000000000003 0001 0002632f`,
    ],
    [{ kind: 'abandon', attempt: 'x' }, '02 03 000178'],
    [{ kind: 'sweep', names: ['a', '\u000200000001/b'] }, '02 04 00000002 000161 000b0230303030303030312f62'],
  ] as [RestoreStep, string][])
    it(`keeps its first format byte for byte: ${step.kind}`, () => {
      expect(encoded(step).toString('hex')).to.equal(bytes.replaceAll(' ', ''));
    });

  for (const [name, step] of [
    ['an invalid path', { kind: 'stage', attempt: 'x', chunk: 0, records: [{ path: 'a//b', value: Buffer.of(1) }] }],
    [
      'a path twice',
      { kind: 'stage', attempt: 'x', chunk: 0, records: ['a', 'a'].map((path) => ({ path, value: Buffer.of(1) })) },
    ],
    ['an attempt without a name', { kind: 'abandon', attempt: '' }],
    ['an attempt name with other characters', { kind: 'abandon', attempt: 'a b' }],
    ['a negative chunk', { kind: 'stage', attempt: 'x', chunk: -1, records: [] }],
    ['a prefix that keeps everything', { kind: 'swap', attempt: 'x', records: 0, digest: 0n, valuesWritten: 0, keep: [''] }],
    ['too many values', { kind: 'swap', attempt: 'x', records: 0, digest: 0n, valuesWritten: 2 ** 47, keep: [] }],
    ['a fraction', { kind: 'swap', attempt: 'x', records: 0.5, digest: 0n, valuesWritten: 0, keep: [] }],
    ['an invalid record name', { kind: 'sweep', names: ['\u0003x'] }],
    ['a name that spells out space 0', { kind: 'sweep', names: ['\u000200000000/a'] }],
  ] as [string, RestoreStep][])
    it(`refuses to encode ${name}`, () => expect(() => encoded(step)).to.throw(TypeError));

  it('refuses a restore step with conditions or writes', () => {
    const restore: RestoreStep = { kind: 'abandon', attempt: 'x' };
    expect(() => encodeCommand({ conditions: [{ path: 'a', revision: 0 }], writes: [], restore })).to.throw(TypeError);
    expect(() => encodeCommand({ conditions: [], writes: [{ path: 'a', value: null }], restore })).to.throw(TypeError);
  });

  it('refuses a step above the entry limit', () => {
    const records = [{ path: 'a', value: Buffer.alloc(transactionBytesMax) }];
    expect(() => encoded({ kind: 'stage', attempt: 'x', chunk: 0, records }))
      .to.throw()
      .with.property('code', 'too_large');
  });

  it('decodes any bytes to a step that encodes to the same bytes, or throws CodecError', () => {
    const mutated = fc
      .tuple(someStep, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }), fc.nat(3))
      .map(([step, edits, cut]) => {
        const bytes = Buffer.from(encoded(step));
        for (const [at, byte] of edits) bytes[1 + (at % (bytes.length - 1))] = byte;
        return bytes.subarray(0, bytes.length - cut);
      });
    const random = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.concat([Buffer.of(2), bytes]));
    let decoded = 0;
    fc.assert(
      fc.property(fc.oneof(mutated, random), (bytes) => {
        try {
          const command = decodeCommand(bytes);
          expect(encodeCommand(command).equals(bytes)).to.equal(true);
          decoded += 1;
        } catch (error) {
          if (!(error instanceof CodecError)) throw error;
        }
      }),
      { numRuns: 5000 },
    );
    expect(decoded).to.be.above(100);
  });
});

describe('the spaces record', () => {
  const spaces: Spaces = {
    routes: [
      { prefix: 'core/', space: 0 },
      { prefix: '', space: 3 },
    ],
    nextSpace: 5,
    attempt: { id: 'x', space: 4, chunks: 2, records: 9, digest: 2n ** 255n + 1n },
    live: 'w',
  };

  it('gives back what was encoded', () => {
    expect(decodeSpaces(encodeSpaces(spaces))).to.deep.equal(spaces);
    const without = { ...spaces, attempt: undefined, live: undefined };
    expect(decodeSpaces(encodeSpaces(without))).to.deep.equal(without);
  });

  for (const text of [
    '',
    '{',
    'null',
    '[]',
    '{"format":2}',
    '{"format":1}',
    '{"format":1,"routes":[{}],"nextSpace":1,"attempt":null,"live":null}',
    '{"format":1,"routes":[],"nextSpace":1,"attempt":{},"live":null}',
  ])
    it(`cannot be decoded from ${text || 'no bytes'}`, () => expect(() => decodeSpaces(Buffer.from(text))).to.throw(CodecError));

  it('keeps the routes of the longest kept prefix, also when a prefix is kept twice', () => {
    const once = { ...spaces, routes: rerouted({ ...spaces, routes: [] }, 1, ['core/', 'core/raft/']) };
    const twice = { ...spaces, routes: rerouted(once, 2, ['core/', 'sys/']) };
    expect(['a', 'core/x', 'core/raft/x', 'sys/x'].map((path) => spaceOf(once, path))).to.deep.equal([1, 0, 0, 1]);
    expect(['a', 'core/x', 'core/raft/x', 'sys/x'].map((path) => spaceOf(twice, path))).to.deep.equal([2, 0, 0, 1]);
    const thrice = { ...spaces, routes: rerouted(twice, 3, ['core/raft/']) };
    expect(['a', 'core/x', 'core/raft/x', 'sys/x'].map((path) => spaceOf(thrice, path))).to.deep.equal([3, 3, 0, 3]);
  });

  for (const name of [
    '',
    'a//b',
    '\u0000',
    '\u0001x',
    '\u0002',
    '\u00020000001/a',
    '\u000200000001',
    '\u000200000001/',
    '\u00020000000x/a',
    '\u000200000001/a\n',
  ])
    it(`refuses the name ${JSON.stringify(name)}`, () => expect(placeOf(name)).to.equal(undefined));
});
