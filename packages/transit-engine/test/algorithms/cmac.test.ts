import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { cmac, cmacKey } from '../../src/algorithms/cmac.ts';
import { fitsType, keyType } from '../../src/keys/key-type.ts';
import { secret } from '../fixtures.ts';

interface WycheproofGroup {
  readonly keySize: number;
  readonly tests: readonly {
    readonly comment: string;
    readonly key: string;
    readonly msg: string;
    readonly tag: string;
    readonly result: 'valid' | 'invalid';
  }[];
}
interface AcvpGroup {
  readonly direction: 'gen' | 'ver';
  readonly keyLen: number;
  readonly macLen: number;
  readonly tests: readonly {
    readonly tcId: number;
    readonly key: string;
    readonly message: string;
    readonly mac?: string;
    readonly expected: { readonly mac?: string; readonly testPassed?: boolean };
  }[];
}

const groupsOf = <G>(file: string): readonly G[] =>
  JSON.parse(readFileSync(new URL(`../vectors/${file}`, import.meta.url), 'utf8')).testGroups;
const hex = (text: string): Buffer => Buffer.from(text, 'hex');

/** The whole MAC by the type whose keys have this length. */
async function macOf(key: string, message: string): Promise<string> {
  const cipher = keyType(`aes${key.length * 4}-cmac`).cmac;
  if (cipher === undefined) throw new Error('not a type that makes CMACs');
  return (await cmac(cmacKey(cipher, secret(hex(key))), hex(message))).toString('hex');
}

describe('CMAC, on the vectors of Wycheproof', () => {
  const groups = groupsOf<WycheproofGroup>('aes_cmac_test.json');
  const usable = groups.filter(({ keySize }) => keySize === 128 || keySize === 256).flatMap(({ tests }) => tests);

  it('computes the tags of 29 valid cases and not those of 114 invalid ones', async () => {
    for (const { key, msg, tag, result, comment } of usable) {
      if (result === 'valid') expect(await macOf(key, msg), comment).to.equal(tag);
      else expect(await macOf(key, msg), comment).to.not.equal(tag);
    }
    const valid = usable.filter(({ result }) => result === 'valid');
    expect([valid.length, usable.length - valid.length]).to.deep.equal([29, 114]);
  });

  it('refuses keys of every other length', () => {
    const others = groups.filter(({ keySize }) => keySize !== 128 && keySize !== 256);
    expect(others.flatMap(({ tests }) => tests)).to.have.lengthOf(81);
    for (const { keySize } of others) {
      for (const name of ['aes128-cmac', 'aes256-cmac']) expect(fitsType(keyType(name), keySize / 8)).to.equal(false);
    }
  });
});

describe('CMAC, on the vectors of NIST', () => {
  const groups = groupsOf<AcvpGroup>('CMAC-AES-1.0.json');

  for (const direction of ['gen', 'ver'] as const) {
    it(`agrees with every case of the direction "${direction}", shortened MACs too`, async () => {
      let cases = 0;
      for (const { macLen, tests } of groups.filter((group) => group.direction === direction)) {
        for (const { tcId, key, message, mac, expected } of tests) {
          const shown = (await macOf(key, message)).slice(0, macLen / 4).toUpperCase();
          if (direction === 'gen') expect(shown, `case ${tcId}`).to.equal(expected.mac);
          else expect(shown === mac, `case ${tcId}`).to.equal(expected.testPassed);
          cases += 1;
        }
      }
      expect(cases).to.be.above(40);
    });
  }
});

describe('CMAC', () => {
  it('is that of RFC 4493 for a message of 40 bytes', async () => {
    const message = '6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411';
    expect(await macOf('2b7e151628aed2a6abf7158809cf4f3c', message)).to.equal('dfa66747de9ae63030ca32611497c827');
  });

  it('differs between a padded message and one that ends like the padding', async () => {
    const key = '00'.repeat(16);
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 47 }), async (bytes) => {
        const message = Buffer.from(bytes).toString('hex');
        const padded = `${message}80${'00'.repeat((31 - (bytes.length % 16)) % 16)}`;
        expect(await macOf(key, message)).to.not.equal(await macOf(key, padded));
      }),
    );
  });

  it('of a large message, computed in pieces, equals the CMAC of the whole message', async () => {
    const message = Buffer.alloc(3 * 1024 * 1024 + 5, 7).toString('hex');
    // By openssl: head -c 3145733 /dev/zero | tr '\0' '\7' | openssl mac -cipher AES-128-CBC -macopt hexkey:… CMAC
    expect(await macOf('000102030405060708090a0b0c0d0e0f', message)).to.equal('d21f987c13511b65018610b482e2d5ec');
  });
});
