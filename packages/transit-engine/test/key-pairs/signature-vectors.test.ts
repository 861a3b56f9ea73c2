import { createHash, createPrivateKey } from 'node:crypto';
import { expect } from 'chai';
import type { TransitEngine, VerifyRequest } from '../../src/index.ts';
import { newEngine, refusalOf } from '../fixtures.ts';
import { storeWithWrappingKey, wrapped } from '../transfers/wrapped.ts';
import { hex, vectorFile, type Wycheproof } from '../vector-file.ts';

interface Group {
  readonly publicKeyPem: string;
}

interface Case {
  readonly msg: string;
  readonly sig: string;
}

/** Returns the engine's verdict. A refusal counts as invalid. */
async function verdict(engine: TransitEngine, name: string, request: VerifyRequest): Promise<boolean> {
  try {
    const reply = await engine.signing.verify(name, request);
    return 'valid' in reply && reply.valid;
  } catch {
    await refusalOf(engine.signing.verify(name, request));
    return false;
  }
}

const pkcs1v15 = { signatureAlgorithm: 'pkcs1v15' };
const sha = (hash: string): string => hash.replace('sha2-', 'sha');

/** A file, the type of its keys, how its signatures were made, and the number of refused `acceptable` cases. */
const files: readonly {
  readonly file: string;
  readonly type: string;
  readonly hash?: string;
  readonly made?: VerifyRequest;
  readonly cases: number;
}[] = [
  { file: 'ecdsa_secp256r1_sha256', type: 'ecdsa-p256', hash: 'sha2-256', cases: 359 },
  { file: 'ecdsa_secp384r1_sha384', type: 'ecdsa-p384', hash: 'sha2-384', cases: 375 },
  { file: 'ecdsa_secp521r1_sha512', type: 'ecdsa-p521', hash: 'sha2-512', cases: 394 },
  {
    file: 'ecdsa_secp256r1_sha256_p1363',
    type: 'ecdsa-p256',
    hash: 'sha2-256',
    made: { marshalingAlgorithm: 'jws' },
    cases: 195,
  },
  {
    file: 'ecdsa_secp384r1_sha384_p1363',
    type: 'ecdsa-p384',
    hash: 'sha2-384',
    made: { marshalingAlgorithm: 'jws' },
    cases: 208,
  },
  {
    file: 'ecdsa_secp521r1_sha512_p1363',
    type: 'ecdsa-p521',
    hash: 'sha2-512',
    made: { marshalingAlgorithm: 'jws' },
    cases: 240,
  },
  { file: 'ed25519', type: 'ed25519', cases: 113 },
  { file: 'rsa_pss_2048_sha256_mgf1_32', type: 'rsa-2048', hash: 'sha2-256', made: { saltLength: '32' }, cases: 82 },
  { file: 'rsa_pss_3072_sha256_mgf1_32', type: 'rsa-3072', hash: 'sha2-256', made: { saltLength: '32' }, cases: 78 },
  { file: 'rsa_pss_4096_sha512_mgf1_64', type: 'rsa-4096', hash: 'sha2-512', made: { saltLength: '64' }, cases: 135 },
  { file: 'rsa_signature_2048_sha256', type: 'rsa-2048', hash: 'sha2-256', made: pkcs1v15, cases: 194 },
  { file: 'rsa_signature_3072_sha384', type: 'rsa-3072', hash: 'sha2-384', made: pkcs1v15, cases: 195 },
  { file: 'rsa_signature_4096_sha512', type: 'rsa-4096', hash: 'sha2-512', made: pkcs1v15, cases: 187 },
];

describe('signatures, on the vectors of Wycheproof', () => {
  for (const { file, type, hash, made, cases } of files) {
    const ways = hash === undefined ? [false] : [false, true];
    for (const prehashed of ways) {
      it(`agrees with every case of ${file}${prehashed ? ', over the digest' : ''}`, async () => {
        const { testGroups } = vectorFile<Wycheproof<Group, Case>>(`${file}_test.json`);
        const { engine } = newEngine({ store: await storeWithWrappingKey() });
        let judged = 0;
        for (const [index, { publicKeyPem: publicKey, tests }] of testGroups.entries()) {
          const name = `k${index}`;
          await engine.transfers.importKey(name, { type, publicKey });
          for (const { tcId, comment, msg, sig, result } of tests) {
            const message = prehashed
              ? createHash(sha(hash ?? ''))
                  .update(hex(msg))
                  .digest()
              : hex(msg);
            const text = hex(sig).toString(made?.marshalingAlgorithm === 'jws' ? 'base64url' : 'base64');
            const request = {
              ...made,
              hashAlgorithm: hash,
              prehashed,
              input: message.toString('base64'),
              signature: `svc:v1:${text}`,
            };
            // The acceptable cases are PKCS#1 v1.5 signatures without the NULL that RFC 8017 §9.2 requires. The engine refuses them.
            expect(await verdict(engine, name, request), `${tcId} ${comment}`).to.equal(result === 'valid');
            judged += 1;
          }
        }
        expect(judged).to.equal(cases);
      });
    }
  }
});

interface EdDsaCase {
  readonly name: string;
  readonly secretKey: string;
  readonly publicKey: string;
  readonly message: string;
  readonly context?: string;
  readonly signature: string;
}

describe('Ed25519, on the vectors of RFC 8032 §7', () => {
  for (const { file, cases, options } of [
    { file: 'rfc8032-eddsa-ed25519', cases: 5, options: () => ({}) },
    {
      file: 'rfc8032-eddsa-ed25519ctx',
      cases: 4,
      options: ({ context = '' }: EdDsaCase) => ({ signatureContext: hex(context).toString('base64') }),
    },
    { file: 'rfc8032-eddsa-ed25519ph', cases: 1, options: () => ({ prehashed: true, hashAlgorithm: 'sha2-512' }) },
  ]) {
    it(`makes and accepts every signature of ${file}, and shows every public key`, async () => {
      const vectors = vectorFile<readonly EdDsaCase[]>(`${file}.json`);
      expect(vectors).to.have.length(cases);
      const { engine } = newEngine({ store: await storeWithWrappingKey() });
      const publicPem = await engine.transfers.wrappingKey();
      for (const [index, vector] of vectors.entries()) {
        const pkcs8 = Buffer.concat([hex('302e020100300506032b657004220420'), hex(vector.secretKey).subarray(0, 32)]);
        await engine.transfers.importKey(`k${index}`, { type: 'ed25519', ciphertext: wrapped(publicPem, pkcs8) });
        const asked = options(vector);
        const message = 'prehashed' in asked ? createHash('sha512').update(hex(vector.message)).digest() : hex(vector.message);
        const request = { ...asked, input: message.toString('base64') };
        const signature = `svc:v1:${hex(vector.signature).toString('base64')}`;
        expect(await engine.signing.sign(`k${index}`, request), vector.name).to.deep.equal({ signature, keyVersion: 1 });
        expect(await engine.signing.verify(`k${index}`, { ...request, signature }), vector.name).to.deep.equal({ valid: true });
        const [version] = (await engine.readKey(`k${index}`)).versions;
        expect(version?.pair?.publicKey).to.equal(hex(vector.publicKey).toString('base64'));
      }
    });
  }
});

interface CurveVectors {
  readonly curve: string;
  readonly private: string;
  readonly Ux: string;
  readonly Uy: string;
  readonly cases: readonly { readonly hash: string; readonly message: string; readonly r: string; readonly s: string }[];
}

describe('ECDSA, on the vectors of RFC 6979 appendix A.2', () => {
  for (const vectors of vectorFile<readonly CurveVectors[]>('rfc6979-deterministic-ecdsa-vectors.json')) {
    const type = vectors.curve.replace('NIST P-', 'ecdsa-p');
    it(`accepts every signature of ${type}, over messages and digests, under the public key of that private key`, async () => {
      const bytes = Math.ceil(Number(type.slice(-3)) / 8);
      const number = (text: string): Buffer => hex(text.padStart(2 * bytes, '0'));
      const coordinates = { x: number(vectors.Ux).toString('base64url'), y: number(vectors.Uy).toString('base64url') };
      const jwk = { kty: 'EC', crv: vectors.curve.slice(5), d: number(vectors.private).toString('base64url'), ...coordinates };
      const pkcs8 = createPrivateKey({ key: jwk, format: 'jwk' }).export({ type: 'pkcs8', format: 'der' });
      const { engine } = newEngine({ store: await storeWithWrappingKey() });
      await engine.transfers.importKey('k', { type, ciphertext: wrapped(await engine.transfers.wrappingKey(), pkcs8) });
      expect(vectors.cases).to.have.length.above(9);
      for (const { hash, message, r, s } of vectors.cases) {
        const hashAlgorithm = hash === 'SHA-1' ? 'sha1' : hash.replace('SHA-', 'sha2-');
        const signature = `svc:v1:${Buffer.concat([number(r), number(s)]).toString('base64url')}`;
        const digest = createHash(sha(hashAlgorithm)).update(message).digest();
        for (const request of [
          { input: Buffer.from(message).toString('base64') },
          { input: digest.toString('base64'), prehashed: true },
        ]) {
          const asked = { ...request, hashAlgorithm, marshalingAlgorithm: 'jws', signature };
          expect(await engine.signing.verify('k', asked), `${hash} ${message}`).to.deep.equal({ valid: true });
        }
      }
    });
  }
});
