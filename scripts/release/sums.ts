// SHA256SUMS covers every file of a release; the signature covers SHA256SUMS.
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Artifact } from './provenance.ts';

/** Returns every file of a folder with its hash, sorted by name. */
export function artifactsIn(folder: string): Artifact[] {
  return readdirSync(folder)
    .sort()
    .map((name) => ({
      name,
      sha256: createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    }));
}

/** Reads an Ed25519 private key in PEM. A dry run without a key uses one that is forgotten afterwards. @throws for any other key */
export function signingKey(file: string | undefined): KeyObject {
  if (file === undefined) return generateKeyPairSync('ed25519').privateKey;
  const key = createPrivateKey(readFileSync(file));
  if (key.asymmetricKeyType !== 'ed25519') throw new Error(`${file} is not an Ed25519 key (openssl genpkey -algorithm ed25519)`);
  return key;
}

/** Writes SHA256SUMS, its signature, and the public key, with which openssl verifies it. */
export function writeSums(folder: string, key: KeyObject): void {
  const sums = artifactsIn(folder)
    .map(({ name, sha256 }) => `${sha256}  ${name}\n`)
    .join('');
  writeFileSync(join(folder, 'SHA256SUMS'), sums);
  writeFileSync(join(folder, 'SHA256SUMS.sig'), sign(null, Buffer.from(sums), key));
  writeFileSync(join(folder, 'release-key.pub.pem'), createPublicKey(key).export({ type: 'spki', format: 'pem' }));
}
