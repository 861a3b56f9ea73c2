import { expect } from 'chai';
import fc from 'fast-check';
import { TransitError } from '../src/index.ts';
import { encryptOne, fox, newEngine } from './fixtures.ts';

const rotate = fc.constant({ kind: 'rotate' as const });
const trim = fc.record({ kind: fc.constant('trim' as const), to: fc.integer({ min: 0, max: 6 }) });
const minimums = fc.record(
  {
    kind: fc.constant('configure' as const),
    minDecryptionVersion: fc.integer({ min: 0, max: 6 }),
    minEncryptionVersion: fc.integer({ min: 0, max: 6 }),
  },
  { requiredKeys: ['kind'] },
);

/** Returns whether a request was accepted. Errors other than refusals fail the test. */
async function accepted(request: Promise<unknown>): Promise<boolean> {
  try {
    await request;
    return true;
  } catch (error) {
    if (error instanceof TransitError) return false;
    throw error;
  }
}

describe('a key with many versions', () => {
  it('accepts exactly the versions that its minimums allow, after any changes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(rotate, rotate, minimums, trim), { maxLength: 14 }), async (changes) => {
        const { engine } = newEngine();
        await engine.createKey('k', {});
        const made = [(await encryptOne(engine, 'k', { plaintext: fox })).ciphertext];
        const model = { latest: 1, minDecryption: 1, minEncryption: 0, minAvailable: 0 };
        for (const change of changes) {
          if (change.kind === 'rotate') {
            const { key } = await engine.rotateKey('k');
            expect(key).to.deep.equal(await engine.readKey('k'));
            model.latest += 1;
            made.push((await encryptOne(engine, 'k', { plaintext: fox })).ciphertext);
          } else if (change.kind === 'trim') {
            const allowed =
              change.to >= Math.max(model.minAvailable, 1) && change.to <= Math.min(model.minEncryption, model.minDecryption);
            expect(await accepted(engine.trimKey('k', { minAvailableVersion: change.to }))).to.equal(allowed);
            if (allowed) model.minAvailable = change.to;
          } else {
            const minDecryption = Math.max(change.minDecryptionVersion ?? model.minDecryption, 1);
            const minEncryption = change.minEncryptionVersion ?? model.minEncryption;
            const allowed =
              Math.max(minDecryption, minEncryption) <= model.latest &&
              (minEncryption === 0 || minEncryption >= minDecryption) &&
              Math.min(minDecryption, minEncryption) >= model.minAvailable;
            expect(await accepted(engine.configureKey('k', change))).to.equal(allowed);
            if (allowed) Object.assign(model, { minDecryption, minEncryption });
          }
        }

        for (const [index, ciphertext] of made.entries()) {
          const version = index + 1;
          expect(await accepted(engine.ciphertexts.decrypt('k', { ciphertext }))).to.equal(version >= model.minDecryption);
          expect(await accepted(encryptOne(engine, 'k', { plaintext: fox, keyVersion: version }))).to.equal(
            version >= Math.max(model.minEncryption, model.minDecryption),
          );
        }
        const { versions } = await engine.readKey('k');
        expect(versions.map(({ version }) => version)).to.deep.equal(
          made.map((_, index) => index + 1).filter((version) => version >= model.minDecryption),
        );
      }),
    );
  });
});
