import { CodecError } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import { decodeTransaction, encodeTransaction, transactionBytesMax } from '../../src/store/codec.ts';
import type { Transaction } from '../../src/store/transaction.ts';
import { someTransaction } from './arbitraries.ts';

const put = (path: string, value: Uint8Array | null = Buffer.from('x')): Transaction => ({
  conditions: [],
  writes: [{ path, value }],
});
const decoded = (data: Uint8Array) => {
  const { conditions, writes } = decodeTransaction(data);
  return { conditions, writes: writes.map(({ path, value }) => ({ path, value: value && Buffer.from(value).toString('hex') })) };
};

describe('transaction codec', () => {
  it('decodes to the encoded transaction', () => {
    fc.assert(
      fc.property(someTransaction({ revisionMax: 2 ** 31 - 1 }), (transaction) => {
        expect(decoded(encodeTransaction(transaction))).to.deep.equal({
          conditions: transaction.conditions,
          writes: transaction.writes.map(({ path, value }) => ({ path, value: value && Buffer.from(value).toString('hex') })),
        });
      }),
    );
  });

  it('keeps its first format byte for byte, so that old logs stay readable', () => {
    const transaction: Transaction = {
      conditions: [{ path: 'a/b', revision: 2 ** 48 - 1 }],
      writes: [
        { path: 'é', value: Buffer.from('beef', 'hex') },
        { path: 'c', value: null },
        { path: 'd', value: Buffer.alloc(0) },
      ],
    };
    const bytes = '01 00000001 0003612f62 ffffffffffff 00000003 0002c3a9 01 00000002 beef 000163 00 000164 01 00000000';
    expect(encodeTransaction(transaction).toString('hex')).to.equal(bytes.replaceAll(' ', ''));
  });

  it('distinguishes an empty value from a deletion', () => {
    expect(decodeTransaction(encodeTransaction(put('a', Buffer.alloc(0)))).writes[0]?.value).to.have.length(0);
    expect(decodeTransaction(encodeTransaction(put('a', null))).writes[0]?.value).to.equal(null);
  });

  it('accepts a transaction of the maximum size and refuses one more byte with too_large', () => {
    const overhead = encodeTransaction(put('a', Buffer.alloc(0))).length;
    const largest = Buffer.alloc(transactionBytesMax - overhead);
    expect(decodeTransaction(encodeTransaction(put('a', largest))).writes[0]?.value).to.have.length(largest.length);
    expect(() => encodeTransaction(put('a', Buffer.alloc(largest.length + 1))))
      .to.throw()
      .with.property('code', 'too_large');
  });

  for (const path of ['', '/a', 'a//b', 'a\n', '\udc00', 'a'.repeat(1025)]) {
    it(`refuses to encode the path ${JSON.stringify(path.slice(0, 10))}`, () => {
      expect(() => encodeTransaction(put(path))).to.throw(TypeError);
      expect(() => encodeTransaction({ conditions: [{ path, revision: 0 }], writes: [] })).to.throw(TypeError);
    });
  }

  it('refuses to encode two writes to one path, since their order would decide', () => {
    const twice = [...put('a').writes, ...put('a', null).writes];
    expect(() => encodeTransaction({ conditions: [], writes: twice })).to.throw(TypeError, 'twice');
  });

  for (const revision of [-1, 0.5, Number.NaN, 2 ** 48]) {
    it(`refuses to encode the revision ${revision}`, () => {
      expect(() => encodeTransaction({ conditions: [{ path: 'a', revision }], writes: [] })).to.throw(TypeError);
    });
  }

  for (const { bytes, reason } of [
    { bytes: '', reason: 'cut short' },
    { bytes: 'ff 00000000 00000000', reason: 'format 255' },
    { bytes: '03 000000', reason: 'cut short' },
    { bytes: '03 00000000', reason: 'names no feature level' },
    { bytes: '03 00000002 00', reason: 'left over' },
    { bytes: '01 ffffffff', reason: 'cut short' },
    { bytes: '01 00000000 00000001 000161 02', reason: 'kind 2' },
    { bytes: '01 00000000 00000001 000161 01 ffffffff', reason: 'cut short' },
    { bytes: '01 00000000 00000001 0000 00', reason: 'empty segment' },
    { bytes: '01 00000000 00000001 0001ff 00', reason: 'not UTF-8' },
    { bytes: '01 00000000 00000002 000161 00 000161 00', reason: 'twice' },
    { bytes: '01 00000000 00000000 00', reason: 'left over' },
  ]) {
    it(`refuses to decode ${bytes || 'nothing'}: ${reason}`, () => {
      expect(() => decodeTransaction(Buffer.from(bytes.replaceAll(' ', ''), 'hex'))).to.throw(CodecError, reason);
    });
  }

  it('decodes any bytes to a transaction that encodes to the same bytes, or throws CodecError', () => {
    const mutated = fc
      .tuple(someTransaction({ revisionMax: 9 }), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }), fc.nat(3))
      .map(([transaction, edits, cut]) => {
        const bytes = Buffer.from(encodeTransaction(transaction));
        for (const [at, byte] of edits) bytes[at % bytes.length] = byte;
        return bytes.subarray(0, bytes.length - cut);
      });
    fc.assert(
      fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 60 })), (bytes) => {
        let transaction: Transaction;
        try {
          transaction = decodeTransaction(bytes);
        } catch (error) {
          expect(error).to.be.instanceOf(CodecError);
          return;
        }
        expect(encodeTransaction(transaction).equals(bytes)).to.equal(true);
      }),
      { numRuns: 5000 },
    );
  });
});
