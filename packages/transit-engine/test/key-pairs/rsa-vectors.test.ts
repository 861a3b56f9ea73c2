import { createPrivateKey } from 'node:crypto';
import { expect } from 'chai';
import { decryptOne, newEngine, refusalOf } from '../fixtures.ts';
import { storeWithWrappingKey, wrapped } from '../transfers/wrapped.ts';
import { hex, vectorFile, type Wycheproof } from '../vector-file.ts';

interface Group {
  readonly keySize: number;
  readonly privateKeyPkcs8: string;
}

interface Case {
  readonly msg: string;
  readonly ct: string;
  readonly label?: string;
}

const base64 = (text: string): string => hex(text).toString('base64');
const ciphertextOf = (ct: string): string => `svc:v1:${base64(ct)}`;

/** An engine with the group's key under the name `k`. */
async function holding({ keySize, privateKeyPkcs8 }: Group) {
  const { engine } = newEngine({ store: await storeWithWrappingKey() });
  const ciphertext = wrapped(await engine.transfers.wrappingKey(), hex(privateKeyPkcs8));
  await engine.transfers.importKey('k', { type: `rsa-${keySize}`, ciphertext });
  return engine;
}

describe('RSA-OAEP, on the vectors of Wycheproof', () => {
  for (const [file, hashAlgorithm, cases] of [
    ['rsa_oaep_2048_sha1_mgf1sha1', 'sha1', 28],
    ['rsa_oaep_2048_sha256_mgf1sha256', undefined, 30],
    ['rsa_oaep_3072_sha256_mgf1sha256', 'sha2-256', 26],
    ['rsa_oaep_4096_sha256_mgf1sha256', '', 29],
    ['rsa_oaep_4096_sha512_mgf1sha512', 'sha2-512', 31],
  ] as const) {
    it(`decrypts exactly the valid cases of ${file}, and refuses the others, including labels, with one text`, async () => {
      const { testGroups } = vectorFile<Wycheproof<Group, Case>>(`${file}_test.json`);
      let judged = 0;
      for (const group of testGroups) {
        const engine = await holding(group);
        for (const { tcId, msg, ct, label = '', result } of group.tests) {
          judged += 1;
          const request = { ciphertext: ciphertextOf(ct), hashAlgorithm };
          if (result === 'valid' && label === '') {
            expect((await decryptOne(engine, 'k', request)).plaintext, `${tcId}`).to.equal(base64(msg));
          } else {
            const refusal = await refusalOf(engine.ciphertexts.decrypt('k', request));
            expect(refusal.message, `${tcId}`).to.equal('failed to RSA decrypt the ciphertext: crypto/rsa: decryption error');
          }
        }
      }
      expect(judged).to.equal(cases);
    });
  }
});

describe('RSA PKCS#1 v1.5, on the vectors of Wycheproof', () => {
  it('decrypts valid cases, and returns deterministic other bytes for wrong padding', async () => {
    const { testGroups } = vectorFile<Wycheproof<Group, Case>>('rsa_pkcs1_2048_test.json');
    let judged = 0;
    for (const group of testGroups) {
      const engine = await holding(group);
      for (const { tcId, msg, ct, result } of group.tests) {
        judged += 1;
        const request = { ciphertext: ciphertextOf(ct), paddingScheme: 'pkcs1v15' };
        // An error for a ciphertext of another length, or above the modulus, reveals nothing secret.
        const isNumber = ct.length === 512 && hex(ct).compare(modulusOf(group)) < 0;
        if (!isNumber) {
          expect(result, `${tcId}`).to.equal('invalid');
          await refusalOf(engine.ciphertexts.decrypt('k', request));
          continue;
        }
        const { plaintext } = await decryptOne(engine, 'k', request);
        expect(plaintext === base64(msg), `${tcId}`).to.equal(result === 'valid');
        expect((await decryptOne(engine, 'k', request)).plaintext, `${tcId}`).to.equal(plaintext);
      }
    }
    expect(judged).to.equal(49);
  });
});

function modulusOf({ privateKeyPkcs8 }: Group): Buffer {
  const { n = '' } = createPrivateKey({ key: hex(privateKeyPkcs8), format: 'der', type: 'pkcs8' }).export({ format: 'jwk' });
  return Buffer.from(n, 'base64url');
}
