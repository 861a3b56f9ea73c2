import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { newEngine } from './fixtures.ts';
import { storeWithWrappingKey, wrapped } from './wrapped.ts';

interface RecordedKey {
  readonly type: string;
  readonly derived?: boolean;
  readonly convergent_encryption?: boolean;
  readonly encryption_key?: Readonly<Record<string, string>>;
  readonly hmac_key?: Readonly<Record<string, string>>;
  readonly cases: readonly (
    | {
        readonly op: 'encrypt';
        readonly plaintext: string;
        readonly ciphertext: string;
        readonly context?: string;
        readonly associated_data?: string;
      }
    | { readonly op: 'hmac'; readonly input: string; readonly algorithm: string; readonly hmac: string }
  )[];
}

const file = new URL('vectors/recorded-keys.json', import.meta.url);
const recorded: readonly RecordedKey[] = JSON.parse(readFileSync(file, 'utf8')).keys;

/** Keys that another service of this kind exported, and what it made with them before. */
describe('keys that move in from elsewhere', () => {
  for (const [index, { type, derived = false, convergent_encryption, encryption_key, hmac_key, cases }] of recorded.entries()) {
    const kind = `${type}${derived ? ', derived' : ''}${convergent_encryption === true ? ', convergent' : ''}`;
    for (const prefix of ['vault', 'svc']) {
      it(`key ${index} (${kind}) opens and verifies what was made there, under the prefix ${prefix}`, async () => {
        const { engine } = newEngine({ store: await storeWithWrappingKey() });
        const publicPem = await engine.transfers.wrappingKey();
        const [first = '', ...more] = Object.values(encryption_key ?? hmac_key ?? {});
        const ciphertextOf = (material: string) => wrapped(publicPem, Buffer.from(material, 'base64'));
        await engine.transfers.importKey('k', { type, derived, ciphertext: ciphertextOf(first) });
        for (const material of more) await engine.transfers.importVersion('k', { ciphertext: ciphertextOf(material) });
        for (const recordedCase of cases) {
          if (recordedCase.op === 'encrypt') {
            const { plaintext, ciphertext, context, associated_data: associatedData } = recordedCase;
            const own = ciphertext.replace('vault:', `${prefix}:`);
            expect(await engine.decrypt('k', { ciphertext: own, context, associatedData })).to.deep.equal({ plaintext });
          } else {
            const { input, algorithm: hashAlgorithm, hmac } = recordedCase;
            const own = hmac.replace('vault:', `${prefix}:`);
            expect(await engine.signing.verify('k', { input, hashAlgorithm, hmac: own })).to.deep.equal({ valid: true });
          }
        }
        expect(cases).to.have.length.above(0);
      });
    }
  }
});
