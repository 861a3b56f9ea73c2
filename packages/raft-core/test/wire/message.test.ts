import { expect } from 'chai';
import fc from 'fast-check';
import { soleVoter } from '../../src/confchange/conf-state.ts';
import type { Message } from '../../src/types.ts';
import { batchMessagesMax, decodeBatch, encodeBatch } from '../../src/wire/batch.ts';
import { CodecError } from '../../src/wire/codec-error.ts';
import { jsonBytesMax } from '../../src/wire/json.ts';
import { decodeMessage, encodeMessage, frameBytesMax } from '../../src/wire/message.ts';
import { positionMax } from '../../src/wire/snapshot-meta.ts';
import { isInVersion } from '../../src/wire/version.ts';
import { message } from './arbitrary-message.ts';

const envelope = { from: 1, to: 2, term: 3, session: 4, clusterId: 'c' };
const append: Message = {
  ...envelope,
  type: 'Append',
  prevIndex: 5,
  prevTerm: 2,
  commit: 4,
  round: 7,
  entries: [
    { term: 2, index: 6, type: 'normal', data: Uint8Array.of(1, 2, 3) },
    { term: 3, index: 7, type: 'noop', data: new Uint8Array(0) },
  ],
};
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

describe('decodeMessage', () => {
  it('returns every message that was encoded', () => {
    fc.assert(
      fc.property(message, (said) => {
        expect(decodeMessage(encodeMessage(said))).to.deep.equal(said);
      }),
      { numRuns: 1000 },
    );
  });

  it('refuses a term that leaves no room for later elections', () => {
    const of = (term: number): Message => decodeMessage(encodeMessage({ ...append, term }));
    expect(of(positionMax).term).to.equal(positionMax);
    for (const term of [positionMax + 1, 2 ** 48 - 1]) expect(() => of(term)).to.throw(CodecError, 'term');
  });

  it('refuses a snapshot whose term or index leaves no room for later elections and entries', () => {
    const of = (position: object): Message => {
      const meta = { index: 7, term: 1, confIndex: 0, conf: soleVoter(1), ...position };
      return decodeMessage(encodeMessage({ ...envelope, type: 'SnapOffer', meta }));
    };
    for (const name of ['index', 'term']) {
      expect(of({ [name]: positionMax })).to.have.nested.property(`meta.${name}`, positionMax);
      for (const late of [positionMax + 1, 2 ** 48 - 1])
        expect(() => of({ [name]: late })).to.throw(CodecError, 'index or a term');
    }
  });

  it('reads the written form, which must not change', () => {
    const written = [
      '0105', // version, type
      '000000000001000000000002000000000003000000000004', // from, to, term, session
      '0163', // cluster id
      '000000000005000000000002000000000004000000000007', // prevIndex, prevTerm, commit, round
      '00000002',
      '000000000002' + '00' + '00000003' + '010203', // term, type, length, data
      '000000000003' + '01' + '00000000',
    ].join('');
    expect(hex(encodeMessage(append, 1))).to.equal(written);
    expect(decodeMessage(Buffer.from(written, 'hex'))).to.deep.equal(append);
  });

  it('reads a heartbeat with the length of the lease, which may be 0', () => {
    const heartbeat: Message = { ...envelope, type: 'Heartbeat', commit: 5, round: 7, leaseMs: 150 };
    const fields = '000000000001000000000002000000000003000000000004' + '0163' + '000000000005000000000007';
    expect(hex(encodeMessage(heartbeat, 1))).to.equal(`0107${fields}00000096`);
    expect(decodeMessage(Buffer.from(`0107${fields}00000000`, 'hex'))).to.deep.equal({ ...heartbeat, leaseMs: 0 });
  });

  it('reads a commit index that wants no answer', () => {
    const commit: Message = { ...envelope, type: 'Commit', prevIndex: 5, prevTerm: 2, commit: 4 };
    const written = '010f' + '000000000001000000000002000000000003000000000004' + '0163' + '000000000005000000000002000000000004';
    expect(hex(encodeMessage(commit, 1))).to.equal(written);
    expect(decodeMessage(Buffer.from(written, 'hex'))).to.deep.equal(commit);
  });

  it('reads a question whether an entry is applied, and the answer, in version 2 alone', () => {
    const fields = '000000000001000000000002000000000003000000000004' + '0163' + '000000000007000000000006000000000005';
    for (const [type, code] of [
      ['Confirm', '10'],
      ['ConfirmResp', '11'],
    ] as const) {
      const said: Message = { ...envelope, type, request: { id: 7, incarnation: 6 }, index: 5 };
      expect(hex(encodeMessage(said, 2))).to.equal(`02${code}${fields}`);
      expect(decodeMessage(Buffer.from(`02${code}${fields}`, 'hex'))).to.deep.equal(said);
      expect(() => encodeMessage(said, 1)).to.throw(CodecError, 'Version 1');
      expect(() => decodeMessage(Buffer.from(`01${code}${fields}`, 'hex'))).to.throw(CodecError, 'type');
    }
  });

  it('reads every other message in both versions, which differ in their first byte', () => {
    fc.assert(
      fc.property(message, (said) => {
        if (!isInVersion(said.type, 1)) return;
        const [first, second] = [encodeMessage(said, 1), encodeMessage(said, 2)];
        expect([first[0], second[0]]).to.deep.equal([1, 2]);
        expect(first.subarray(1)).to.deep.equal(second.subarray(1));
        expect(decodeMessage(first)).to.deep.equal(said);
      }),
    );
  });

  it('gives entry data as views of the frame, without a copy', () => {
    const frame = encodeMessage(append);
    const decoded = decodeMessage(frame);
    if (decoded.type !== 'Append') throw new Error('another type');
    expect(decoded.entries[0]?.data.buffer).to.equal(frame.buffer);
  });

  it('refuses every prefix of a frame, and anything after its end', () => {
    fc.assert(
      fc.property(message, (said) => {
        const frame = encodeMessage(said);
        for (let length = 0; length < frame.length; length++) {
          expect(() => decodeMessage(frame.subarray(0, length))).to.throw(CodecError);
        }
        expect(() => decodeMessage(Uint8Array.of(...frame, 0))).to.throw(CodecError);
      }),
      { numRuns: 50 },
    );
  });

  for (const [name, change] of Object.entries<(frame: Uint8Array) => void>({
    'a later version': (frame) => frame.set([3], 0),
    'an earlier version': (frame) => frame.set([0], 0),
    'an unknown type': (frame) => frame.set([99], 1),
    'no sender': (frame) => frame.fill(0, 2, 8),
    'no receiver': (frame) => frame.fill(0, 8, 14),
    'a cluster id beyond ASCII': (frame) => frame.set([0xff], 27),
    'more entries than there are bytes for': (frame) => frame.set([0xff, 0xff, 0xff, 0xff], 52),
    'an entry of a later term than its leader': (frame) => frame.set([9], 61),
    'an entry of an earlier term than the one before': (frame) => frame.set([1], 61),
    'an entry of an unknown type': (frame) => frame.set([3], 62),
    'an entry longer than the frame': (frame) => frame.set([0xff], 63),
  })) {
    it(`refuses ${name}`, () => {
      const frame = encodeMessage(append);
      change(frame);
      expect(() => decodeMessage(frame)).to.throw(CodecError);
    });
  }

  for (const [name, data] of Object.entries({
    'no JSON': Uint8Array.of(1, 2, 3),
    'no configuration': Buffer.from('{}'),
    'deeply nested, and longer than any configuration': Buffer.alloc(jsonBytesMax + 1, '['),
  })) {
    it(`refuses a configuration that is ${name}, in an entry and with a snapshot`, () => {
      const frame = encodeMessage({ ...append, entries: [{ term: 3, index: 6, type: 'conf', data }] });
      expect(() => decodeMessage(frame)).to.throw(CodecError, data.length > jsonBytesMax ? /longer/ : /JSON|missing/);
      const meta = { index: 7, term: 1, confIndex: 0, conf: soleVoter(1) };
      const offer = encodeMessage({ ...envelope, type: 'SnapOffer', meta });
      const head = offer.subarray(0, offer.indexOf('{'.charCodeAt(0)));
      expect(() => decodeMessage(Buffer.concat([head, data]))).to.throw(CodecError);
    });
  }

  it('refuses a flag that is neither 0 nor 1', () => {
    const frame = encodeMessage({ ...envelope, type: 'HeartbeatResp', round: 1, fit: true });
    frame.set([2], frame.length - 1);
    expect(() => decodeMessage(frame)).to.throw(CodecError);
  });

  it('refuses a frame above the limit before it looks inside', () => {
    expect(() => decodeMessage(new Uint8Array(frameBytesMax + 1))).to.throw(CodecError, 'longer than');
    expect(() => decodeBatch(Uint8Array.of(1, 0, ...new Uint8Array(10)).subarray(0, 3))).to.throw(CodecError);
  });
});

describe('encodeMessage', () => {
  for (const [name, wrong] of Object.entries<Message>({
    'a term beyond 48 bits': { ...append, term: 2 ** 48 },
    'a negative number': { ...append, round: -1 },
    'a fraction': { ...append, commit: 1.5 },
    'a gap before its entries': { ...append, prevIndex: 4 },
    'a cluster id beyond ASCII': { ...append, clusterId: 'é' },
    'a cluster id that is too long': { ...append, clusterId: 'x'.repeat(256) },
  })) {
    it(`refuses ${name}`, () => {
      expect(() => encodeMessage(wrong)).to.throw(CodecError);
    });
  }
});

describe('decodeBatch', () => {
  it('returns all messages of a turn, in order', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 5 }), (said) => {
        expect(decodeBatch(encodeBatch(said))).to.deep.equal(said);
      }),
    );
  });

  it('sends a single message without a batch around it', () => {
    expect(encodeBatch([append])).to.deep.equal(encodeMessage(append));
  });

  it('refuses more messages than a core sends in one turn, which would fill the memory', () => {
    const most = encodeBatch(Array.from({ length: batchMessagesMax }, () => append));
    expect(decodeBatch(most)).to.have.length(batchMessagesMax);
    const one = encodeMessage(append);
    expect(() => decodeBatch(Buffer.concat([most, Uint8Array.of(0, 0, 0, one.length), one]))).to.throw(CodecError, 'messages');
    expect(() => encodeBatch(Array.from({ length: batchMessagesMax + 1 }, () => append))).to.throw(CodecError, 'messages');
  });

  it('refuses a batch that ends within a message, or that contains a batch', () => {
    const frame = encodeBatch([append, append]);
    expect(() => decodeBatch(frame.subarray(0, -1))).to.throw(CodecError);
    const within = Uint8Array.of(1, 0, 0, 0, 0, frame.length, ...frame);
    expect(() => decodeBatch(within)).to.throw(CodecError);
  });
});
