import { createCipheriv, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { release } from '../src/release.ts';

describe('releasing a Buffer', () => {
  const long = 100_000;
  const encrypted = (): Buffer => {
    const cipher = createCipheriv('aes-256-gcm', randomBytes(32), randomBytes(12));
    return cipher.update(Buffer.alloc(long));
  };

  for (const { name, bytes } of [
    { name: 'allocated', bytes: Buffer.allocUnsafe(long) },
    { name: 'decoded', bytes: Buffer.from('A'.repeat(long), 'base64') },
    { name: 'encrypted', bytes: encrypted() },
  ])
    it(`frees a long one that was ${name}, which is empty afterwards`, () => {
      const before = process.memoryUsage().arrayBuffers;
      const { byteLength } = bytes;
      release(bytes);
      expect(bytes).to.have.lengthOf(0);
      expect(before - process.memoryUsage().arrayBuffers).to.be.at.least(byteLength);
      release(bytes);
    });

  for (const { name, bytes } of [
    { name: 'short one', bytes: Buffer.from('short') },
    { name: 'short one with memory of its own', bytes: Buffer.alloc(5) },
    { name: 'part of a longer one', bytes: Buffer.alloc(long + 1).subarray(1) },
    { name: 'one whose memory threads share', bytes: Buffer.from(new SharedArrayBuffer(long)) },
  ])
    it(`leaves a ${name} as it is`, () => {
      const before = Buffer.from(bytes);
      release(bytes);
      expect(bytes.equals(before)).to.equal(true);
    });
});
