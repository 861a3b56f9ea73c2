import { expect } from 'chai';
import { closeBox, keyBytes, openBox } from '../../src/records/box.ts';

const key = Buffer.alloc(keyBytes, 7);
const [associatedData, plaintext] = [Buffer.from('a path'), Buffer.from('a value')];

describe('a box', () => {
  it('is the nonce, the ciphertext and the tag, after the bytes that it was given as its head', () => {
    const closed = closeBox(key, associatedData, plaintext, Buffer.from('head'));
    expect(closed).to.have.lengthOf(4 + 12 + plaintext.length + 16);
    expect(closed.toString('utf8', 0, 4)).to.equal('head');
    expect(openBox(key, associatedData, closed.subarray(4))).to.deep.equal(plaintext);
  });

  it('has a nonce of its own, also after nonces were drawn again', () => {
    const nonces = Array.from({ length: 1500 }, () => closeBox(key, associatedData, plaintext).toString('hex', 0, 12));
    expect(new Set(nonces).size).to.equal(nonces.length);
    expect(nonces).not.to.include('00'.repeat(12));
  });

  it('is not opened with another key, other associated data, or a changed byte', () => {
    const closed = closeBox(key, associatedData, plaintext);
    expect(openBox(Buffer.alloc(keyBytes), associatedData, closed)).to.equal(undefined);
    expect(openBox(key, Buffer.from('another path'), closed)).to.equal(undefined);
    for (let at = 0; at < closed.length; at++) {
      const changed = Buffer.from(closed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(openBox(key, associatedData, changed), `byte ${at}`).to.equal(undefined);
    }
  });

  it('leaves the stack traces of later errors as they were, also after a wrong key', () => {
    const before = Error.stackTraceLimit;
    closeBox(key, associatedData, plaintext);
    expect(() => closeBox(Buffer.alloc(3), associatedData, plaintext)).to.throw('key length');
    expect(Error.stackTraceLimit).to.equal(before);
  });
});
