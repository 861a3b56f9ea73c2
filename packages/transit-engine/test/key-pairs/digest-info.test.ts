import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { hashesSignedAsIs } from '../../src/key-pairs/digest-info.ts';

const sha1Info = (parameters: string): Buffer =>
  Buffer.concat([
    Buffer.from(parameters === '' ? '301f300706052b0e03021a0414' : '3021300906052b0e03021a05000414', 'hex'),
    createHash('sha1').update('x').digest(),
  ]);

describe('hashesSignedAsIs', () => {
  for (const [because, input, hashes] of [
    ['a DigestInfo names its hash', sha1Info('0500'), ['sha1']],
    ['… without parameters too', sha1Info(''), ['sha1']],
    [
      '… with a length of two bytes, as BER allows',
      Buffer.concat([Buffer.from('308121', 'hex'), sha1Info('0500').subarray(2)]),
      ['sha1'],
    ],
    [
      '… with a long length of its identifier, as BER allows',
      Buffer.from(`3022300a06${'8105'}2b0e03021a05000414${'07'.repeat(20)}`, 'hex'),
      ['sha1'],
    ],
    [
      'a digest that happens to hold the name of another hash counts as both',
      Buffer.concat([sha1Info('').subarray(4, 11), Buffer.alloc(25, 7)]),
      ['sha1', 'sha2-256', 'sha3-256'],
    ],
    ['a bare digest of 20 bytes can be SHA-1', Buffer.alloc(20, 7), ['sha1']],
    ['one of 32 bytes can be of two hashes', Buffer.alloc(32, 7), ['sha2-256', 'sha3-256']],
    ['other bytes are of none', Buffer.alloc(33, 7), []],
    ['nothing is of none', Buffer.alloc(0), []],
  ] as const)
    it(because, () => {
      expect(hashesSignedAsIs(input)).to.deep.equal(hashes);
    });
});
