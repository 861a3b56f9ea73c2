import { CodecError } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import { decodeCommand, encodeCommand } from '../../src/store/codec.ts';
import type { ReplicationStep } from '../../src/store/replication-step.ts';
import { someReplicationStep } from './replication-arbitraries.ts';

const id = 'ab'.repeat(16);
const encoded = (step: ReplicationStep): Buffer => encodeCommand({ replication: step });
/** Encodes any fields as a step without writes. */
const bytesOf = (kind: number, fields: string): Buffer => {
  const json = Buffer.from(fields);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  return Buffer.concat([Buffer.of(4, kind), length, json, Buffer.alloc(4)]);
};

describe('codec of replication steps', () => {
  it('encodes a follow as it always has', () => {
    const from = { number: 1, id, index: 3 };
    const writes = [{ path: 'a', value: Buffer.from('x'), revision: 4 }];
    const local = [{ path: 'core/b', value: Buffer.from('y'), revision: 2 }];
    const bytes = encoded({ kind: 'follow', from, to: 5, writes, valuesWritten: 1, local });
    const fields = `{"from":{"number":1,"id":"${id}","index":3},"to":5,"valuesWritten":1,"local":1}`;
    expect(bytes.toString('latin1')).to.equal(
      `\x04\x03\x00\x00\x00${String.fromCharCode(fields.length)}${fields}\x00\x00\x00\x02` +
        '\x00\x01a\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x01x' +
        '\x00\x06core/b\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x01y',
    );
  });

  it('returns every step as it was', () => {
    fc.assert(
      fc.property(someReplicationStep, (replication) => {
        expect(decodeCommand(encoded(replication))).to.deep.equal({ replication });
      }),
    );
  });

  it('throws only CodecError for a step with one changed byte', () => {
    fc.assert(
      fc.property(someReplicationStep, fc.nat(), fc.integer({ min: 1, max: 255 }), (step, at, change) => {
        const bytes = encoded(step);
        const place = 1 + (at % (bytes.length - 1));
        bytes[place] = (bytes[place] ?? 0) ^ change;
        try {
          decodeCommand(bytes);
        } catch (error) {
          expect(error).to.be.instanceOf(CodecError);
        }
      }),
    );
  });

  for (const [name, bytes] of [
    ['an unknown kind', bytesOf(11, '{}')],
    ['fields that are no JSON', bytesOf(8, '{')],
    ['fields that are no object', bytesOf(8, '7')],
    ['an epoch without an id', bytesOf(8, '{"from":{"number":1}}')],
    ['the number 0 of an epoch', bytesOf(8, `{"from":{"number":0,"id":"${id}"}}`)],
    ['a history in the wrong order', bytesOf(4, historyOf([2, 1], [0, 5]))],
    ['a history that goes back', bytesOf(4, historyOf([1, 2], [5, 4]))],
    ['an empty local prefix, which would keep everything', bytesOf(2, `{"set":"${id}","local":[""]}`)],
    ['a restore without conditions', bytesOf(12, restoreOf({ conditions: undefined }))],
    ['a restore with a condition on no path', bytesOf(12, restoreOf({ conditions: [{ revision: 1 }] }))],
    ['a follow with more local records than writes', bytesOf(3, followOf(1))],
    ['a follow without the number of its local records', bytesOf(3, followOf(undefined))],
    ['fields that are too long', bytesOf(10, JSON.stringify({ long: 'x'.repeat(20_000) }))],
  ] as const)
    it(`refuses to decode ${name}`, () => {
      expect(() => decodeCommand(bytes)).to.throw(CodecError);
    });

  it('decodes the restore of which the refused ones differ', () => {
    expect(decodeCommand(bytesOf(12, restoreOf({})))).to.deep.nested.include({
      'replication.kind': 'restore',
      'replication.attempt': 'a',
    });
  });

  it('refuses to encode what it would not decode, and a step together with writes', () => {
    expect(() => encoded({ kind: 'promote', from: { number: 1, id, index: 3 }, id: 'short', writes: [] })).to.throw(
      TypeError,
      'promote',
    );
    const writes = [{ path: 'a', value: Buffer.from('x') }];
    expect(() => encodeCommand({ conditions: [], writes, replication: { kind: 'disable' } })).to.throw(TypeError, 'one kind');
  });
});

function followOf(local: number | undefined): string {
  return JSON.stringify({ from: { number: 1, id, index: 0 }, to: 1, valuesWritten: 0, local });
}

function restoreOf(changed: object): string {
  const step = { from: { number: 1, id }, attempt: 'a', records: 0, digest: '0', valuesWritten: 0, conditions: [] };
  return JSON.stringify({ ...step, local: 0, localReadAt: 0, ...changed });
}

function historyOf(numbers: readonly number[], starts: readonly number[]): string {
  const epochs = numbers.map((number, at) => ({ number, id, start: starts[at] }));
  return JSON.stringify({ from: { number: 1, id, index: 0 }, epochs });
}
