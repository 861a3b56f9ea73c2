import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { BarrierError } from '../../src/index.ts';
import { decryptValue, encryptValue, termOf } from '../../src/keyring/value.ts';

const key = { term: 7, key: randomBytes(32) };

describe('an encrypted value', () => {
  it('decrypts to the original bytes, also for an empty value', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.string({ minLength: 1 }), (plaintext, path) => {
        expect(decryptValue(key, path, encryptValue(key, path, plaintext))).to.deep.equal(Buffer.from(plaintext));
      }),
    );
  });

  it('is format, term, nonce, ciphertext and tag', () => {
    const stored = encryptValue(key, 'a/b', Buffer.from('twelve bytes'));
    expect(stored.length).to.equal(1 + 4 + 12 + 12 + 16);
    expect(stored[0]).to.equal(1);
    expect(termOf('a/b', stored)).to.equal(7);
  });

  it('has a fresh nonce each time, so that equal values do not look equal', () => {
    const made = Array.from({ length: 100 }, () => encryptValue(key, 'a', Buffer.from('same')).toString('hex'));
    expect(new Set(made).size).to.equal(100);
  });

  it('is refused with the same error wherever a byte is changed or it is truncated', () => {
    const stored = encryptValue(key, 'a/b', Buffer.from('secret'));
    const damaged = [
      ...Array.from(stored, (_, at) => Buffer.from(stored.map((byte, index) => (index === at ? byte ^ 0x10 : byte)))),
      ...Array.from(stored, (_, length) => stored.subarray(0, length)),
      Buffer.concat([stored, Buffer.of(0)]),
    ];
    const errors = damaged.map((value) => failure(() => decryptValue(key, 'a/b', value)));
    expect(new Set(errors)).to.have.lengthOf(1);
    expect(errors[0]).to.match(/^barrier_corrupt /);
  });

  it('is refused at another path, also if path and value could be split differently', () => {
    const stored = encryptValue(key, 'a/b', Buffer.from('secret'));
    for (const path of ['a/c', 'a', 'a/b/', 'a/bb', ''])
      expect(failure(() => decryptValue(key, path, stored))).to.match(/^barrier_corrupt /);
  });

  it('is refused under another term, even with the same key', () => {
    const stored = encryptValue(key, 'a', Buffer.from('secret'));
    expect(failure(() => decryptValue({ term: 8, key: key.key }, 'a', stored))).to.match(/^barrier_corrupt /);
    stored.writeUInt32BE(8, 1);
    expect(failure(() => decryptValue({ term: 8, key: key.key }, 'a', stored))).to.match(/^barrier_corrupt /);
  });

  it('is refused under another key', () => {
    const stored = encryptValue(key, 'a', Buffer.from('secret'));
    expect(failure(() => decryptValue({ term: 7, key: randomBytes(32) }, 'a', stored))).to.match(/^barrier_corrupt /);
  });
});

function failure(attempt: () => unknown): string {
  try {
    attempt();
  } catch (error) {
    if (error instanceof BarrierError) return `${error.code} ${error.message}`;
    throw error;
  }
  return 'none';
}
