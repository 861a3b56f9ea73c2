import { CodecError } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Frame } from '../../src/stream/frame.ts';
import { decodeFrame, encodeFrame } from '../../src/stream/frame-codec.ts';

const id = '0f'.repeat(16);
const at = { number: 2, id, index: 40 };
const epochs = [{ number: 2, id, start: 30 }];
const value = Buffer.from('ciphertext');

const frames: readonly Frame[] = [
  { kind: 'hello', set: id, cursor: at, wantsWholeState: true, level: 3 },
  { kind: 'welcome', epochs },
  { kind: 'state', attempt: 'a-1', epochs, index: 40, valuesWritten: 9 },
  { kind: 'state', attempt: 'a-2', epochs, index: 40, valuesWritten: 9, restoredAt: 35 },
  { kind: 'records', attempt: 'a-1', chunk: 0, records: [{ path: 'transit/key', value, revision: 33 }] },
  { kind: 'end', attempt: 'a-1', records: 1, digest: 2n ** 255n },
  {
    ...{ kind: 'outcome', epoch: { number: 2, id }, from: 40, to: 42, valuesWritten: 1 },
    writes: [
      { path: 'transit/key', value, revision: 41 },
      { path: 'transit/gone', value: null, revision: 42 },
    ],
  },
  { kind: 'checkpoint', at, digest: 0n },
  { kind: 'heartbeat', at, sentMs: 17.25, demoted: true },
  { kind: 'heartbeat', at, sentMs: 17.25, demoted: false, restoredAt: 35 },
  { kind: 'ack', at, echoMs: 17.25 },
  { kind: 'staged', attempt: 'a-1', chunk: 3 },
  { kind: 'nodes', addresses: ['10.0.0.1:8201'], authorities: ['PEM'] },
  { kind: 'key', rootKey: Buffer.alloc(32, 7) },
  { kind: 'announce', set: id, epoch: { number: 2, id } },
  { kind: 'announce', set: id, epoch: { number: 2, id }, proof: 'ab'.repeat(32) },
  { kind: 'refusal', reason: 'other_set' },
];
/** Encodes any fields as a frame without records. */
const bytesOf = (fields: unknown): Buffer => {
  const json = Buffer.from(JSON.stringify(fields));
  const head = Buffer.alloc(5);
  head.writeUInt8(1);
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, json, Buffer.alloc(4)]);
};

describe('frames of the replication stream', () => {
  for (const frame of frames)
    it(`returns ${frame.kind} as it was, and refuses every shorter form`, () => {
      const bytes = encodeFrame(frame);
      expect(decodeFrame(bytes)).to.deep.equal(frame);
      for (let length = 0; length < bytes.length; length++)
        expect(() => decodeFrame(bytes.subarray(0, length)), `${length} bytes`).to.throw(CodecError);
    });

  it('returns any outcome as it was, and throws only CodecError for any bytes', () => {
    const index = fc.integer({ min: 0, max: 2 ** 47 - 2 });
    const path = fc.stringMatching(/^[a-z][a-z0-9/-]{0,40}[a-z]$/).filter((text) => !text.includes('//'));
    const write = fc.record({
      path,
      value: fc.option(fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))),
      revision: index,
    });
    const outcome = fc.record({
      from: index,
      writes: fc.uniqueArray(write, { maxLength: 20, selector: ({ path: name }) => name }),
      valuesWritten: fc.integer({ min: 0, max: 2 ** 47 - 1 }),
    });
    fc.assert(
      fc.property(outcome, ({ from, ...rest }) => {
        const frame: Frame = { kind: 'outcome', epoch: { number: 2, id }, from, to: from + 1, ...rest };
        expect(decodeFrame(encodeFrame(frame))).to.deep.equal(frame);
      }),
    );
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.json().map((json) => bytesOf(JSON.parse(json))),
    );
    fc.assert(
      fc.property(bytes, (any) => {
        expect(() => decodeFrame(any)).to.throw(CodecError);
      }),
    );
  });

  it('says hello without a cursor before the first state', () => {
    const bytes = encodeFrame({ kind: 'hello', set: id, cursor: undefined, wantsWholeState: false, level: 3 });
    expect(decodeFrame(bytes)).to.deep.equal({ kind: 'hello', set: id, wantsWholeState: false, level: 3 });
  });

  it('throws only CodecError for a changed byte', () => {
    for (const frame of frames) {
      const bytes = encodeFrame(frame);
      for (let place = 0; place < bytes.length; place++) {
        const changed = Buffer.from(bytes);
        changed[place] = (changed[place] ?? 0) ^ 0x15;
        try {
          decodeFrame(changed);
        } catch (error) {
          expect(error, `${frame.kind}, byte ${place}`).to.be.instanceOf(CodecError);
        }
      }
    }
  });

  for (const [name, fields] of [
    ['an unknown kind', { kind: 'more' }],
    ['a kind that every object has', { kind: 'constructor' }],
    ['an outcome that goes back', { kind: 'outcome', epoch: { number: 2, id }, from: 42, to: 42, valuesWritten: 0 }],
    ['a restore at no position', { kind: 'heartbeat', at, sentMs: 17, demoted: false, restoredAt: '35' }],
    ['a time that is no number', { kind: 'heartbeat', at, sentMs: '17', demoted: false }],
    ['an index in the half of the range that is kept', { kind: 'checkpoint', at: { ...at, index: 2 ** 47 }, digest: '0' }],
    ['such a number of an epoch', { kind: 'announce', set: id, epoch: { number: 2 ** 47, id } }],
    ['such a start of an epoch', { kind: 'welcome', epochs: [{ number: 1, id, start: 2 ** 47 }] }],
    ['such a restore', { kind: 'heartbeat', at, sentMs: 1, demoted: false, restoredAt: 2 ** 47 }],
    ['a proof that is no digest', { kind: 'announce', set: id, epoch: { number: 2, id }, proof: 'ab' }],
    ['a count of values above those of any cluster', { kind: 'state', attempt: 'a', epochs, index: 40, valuesWritten: 2 ** 47 }],
    ['a digest that is too long', { kind: 'checkpoint', at, digest: 'f'.repeat(65) }],
    ['no address', { kind: 'nodes', addresses: [], authorities: ['PEM'] }],
    ['more addresses than a cluster has', { kind: 'nodes', addresses: Array(33).fill('h:1'), authorities: ['PEM'] }],
    ['an address that is too long', { kind: 'nodes', addresses: ['h'.repeat(262)], authorities: ['PEM'] }],
    ['a state without a root key', { kind: 'key' }],
    ['a set with another form', { kind: 'hello', set: 'zz', wantsWholeState: false, level: 3 }],
    ['a hello without a feature level', { kind: 'hello', set: id, wantsWholeState: false }],
  ] as const)
    it(`refuses ${name}`, () => {
      expect(() => decodeFrame(bytesOf(fields))).to.throw(CodecError);
    });
});
