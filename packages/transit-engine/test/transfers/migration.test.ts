import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { newEngine } from '../fixtures.ts';
import { storeWithWrappingKey, wrapped } from './wrapped.ts';

interface RecordedKey {
  readonly type: string;
  readonly derived?: boolean;
  readonly convergent_encryption?: boolean;
  /** One of these three: base64, or PEM of a key pair. */
  readonly encryption_key?: Readonly<Record<string, string>>;
  readonly hmac_key?: Readonly<Record<string, string>>;
  readonly signing_key?: Readonly<Record<string, string>>;
  /** The public key as the other service returned it. */
  readonly public_key?: Readonly<Record<string, string>>;
  readonly cases: readonly (
    | {
        readonly op: 'encrypt';
        readonly plaintext: string;
        readonly ciphertext: string;
        readonly context?: string;
        readonly associated_data?: string;
      }
    | { readonly op: 'hmac'; readonly input: string; readonly algorithm: string; readonly hmac: string }
    | {
        readonly op: 'sign';
        readonly input: string;
        readonly signature: string;
        readonly context?: string;
        readonly hash_algorithm?: string;
        readonly signature_algorithm?: string;
        readonly marshaling_algorithm?: string;
        readonly salt_length?: string;
        readonly prehashed?: boolean;
      }
  )[];
}

const file = new URL('../vectors/recorded-keys.json', import.meta.url);
const recorded: readonly RecordedKey[] = JSON.parse(readFileSync(file, 'utf8')).keys;

/** Keys exported by another service, and data that it made with them. */
describe('keys of other services', () => {
  for (const [index, { type, derived = false, convergent_encryption, ...key }] of recorded.entries()) {
    const kind = `${type}${derived ? ', derived' : ''}${convergent_encryption === true ? ', convergent' : ''}`;
    for (const prefix of ['vault', 'svc']) {
      it(`key ${index} (${kind}) decrypts and verifies data of the other service, with the prefix ${prefix}`, async () => {
        const { engine } = newEngine({ store: await storeWithWrappingKey() });
        const publicPem = await engine.transfers.wrappingKey();
        const [first = '', ...more] = Object.values(key.encryption_key ?? key.hmac_key ?? key.signing_key ?? {});
        const ciphertextOf = (material: string) => wrapped(publicPem, materialOf(type, material));
        await engine.transfers.importKey('k', { type, derived, exportable: true, ciphertext: ciphertextOf(first) });
        for (const material of more) await engine.transfers.importVersion('k', { ciphertext: ciphertextOf(material) });
        const { versions } = await engine.readKey('k');
        expect(versions).to.have.length(1 + more.length);
        for (const [version, publicKey] of Object.entries(key.public_key ?? {})) {
          const exported = await engine.transfers.exportKey('k', { exportType: 'public-key', version });
          expect(exported.versions.map(({ material }) => Buffer.from(material).toString())).to.deep.equal([publicKey]);
          expect(versions.find((each) => each.version === Number(version))?.pair?.publicKey.trimEnd()).to.equal(
            publicKey.trimEnd(),
          );
        }
        if (key.signing_key !== undefined) {
          const exported = await engine.transfers.exportKey('k', { exportType: 'signing-key' });
          const shown = exported.versions.map(({ material, form }) =>
            Buffer.from(material).toString(form === 'text' ? 'utf8' : form),
          );
          expect(shown, 'comes out as it was').to.deep.equal(Object.values(key.signing_key));
        }
        for (const recordedCase of key.cases) {
          if (recordedCase.op === 'encrypt') {
            const { plaintext, ciphertext, context, associated_data: associatedData } = recordedCase;
            const own = ciphertext.replace('vault:', `${prefix}:`);
            expect(await engine.ciphertexts.decrypt('k', { ciphertext: own, context, associatedData })).to.deep.equal({
              plaintext,
            });
          } else if (recordedCase.op === 'sign') {
            const { input, signature, context, prehashed } = recordedCase;
            const verified = await engine.signing.verify('k', {
              input,
              context,
              prehashed,
              signature: signature.replace('vault:', `${prefix}:`),
              hashAlgorithm: recordedCase.hash_algorithm,
              signatureAlgorithm: recordedCase.signature_algorithm,
              marshalingAlgorithm: recordedCase.marshaling_algorithm,
              saltLength: recordedCase.salt_length,
            });
            expect(verified, JSON.stringify(recordedCase)).to.deep.equal({ valid: true });
          } else {
            const { input, algorithm: hashAlgorithm, hmac } = recordedCase;
            const own = hmac.replace('vault:', `${prefix}:`);
            expect(await engine.signing.verify('k', { input, hashAlgorithm, hmac: own })).to.deep.equal({ valid: true });
          }
        }
        expect(key.cases).to.have.length.above(0);
      });
    }
  }
});

/** Returns the bytes to import: the exported ones or, for a key pair, its PKCS#8. */
function materialOf(type: string, exported: string): Buffer {
  if (type === 'ed25519') {
    const seed = Buffer.from(exported, 'base64').subarray(0, 32);
    return Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  }
  if (!exported.startsWith('-----BEGIN')) return Buffer.from(exported, 'base64');
  return createPrivateKey(exported).export({ type: 'pkcs8', format: 'der' });
}
