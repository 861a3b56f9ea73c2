import { open } from '../aead.ts';
import { decodePayload, parseCiphertext } from '../ciphertext.ts';
import { deriveKey } from '../derivation.ts';
import { TransitError } from '../errors.ts';
import type { LoadedKey } from '../key-cache.ts';
import { aeadOf, associatedDataOf, contextOf, nonceOf, refusePadding } from './inputs.ts';
import { type Item, type Operation, type Tools, versionOf } from './operation.ts';

/** `ciphertext` is a `svc:v1:…` string, the other texts are base64; empty when absent. */
export interface DecryptItem extends Item {
  readonly ciphertext: string;
  readonly context: string;
  readonly associatedData: string;
  readonly nonce: string;
  readonly paddingScheme: string;
}

export interface DecryptResult {
  /** base64. */
  readonly plaintext: string;
}

export const missingCiphertext = 'missing ciphertext to decrypt';

export const decryption: Operation<DecryptItem, DecryptResult> = {
  read: (members) => ({
    ciphertext: members.requiredText('ciphertext', missingCiphertext),
    context: members.text('context'),
    associatedData: members.text('associated_data'),
    nonce: members.text('nonce'),
    paddingScheme: members.text('padding_scheme'),
    reference: members.text('reference'),
  }),
  run: async (tools, key, item, index) => {
    aeadOf(key, 'decryption');
    const context = contextOf(key, item.context);
    const nonce = nonceOf(key, item.nonce);
    refusePadding(key, { name: 'padding_scheme', scheme: item.paddingScheme }, index);
    const associatedData = associatedDataOf(item.associatedData, index);
    const plaintext = await decryptText(tools, key, { ciphertext: item.ciphertext, associatedData, context, nonce });
    return { plaintext: plaintext.toString('base64') };
  },
};

/** A ciphertext string to decrypt, and under what. */
export interface Opening {
  readonly ciphertext: string;
  readonly associatedData: Uint8Array;
  readonly context: Uint8Array;
  /** From the caller, where it is not part of the ciphertext; else empty. */
  readonly nonce: Uint8Array;
}

/** @throws TransitError `invalid_ciphertext`, `key_version_unavailable`, or `invalid_request` when there is no ciphertext at all */
export async function decryptText(tools: Tools, key: LoadedKey, opening: Opening): Promise<Buffer> {
  const { record, type } = key;
  const aead = aeadOf(key, 'decryption');
  if (opening.ciphertext === '') throw new TransitError('invalid_request', missingCiphertext);
  const { version, payload: encoded } = parseCiphertext(opening.ciphertext, tools.prefix);
  checkVersion(key, version);
  const payload = opening.nonce.length > 0 ? Buffer.concat([opening.nonce, decodePayload(encoded)]) : decodePayload(encoded);
  const loaded = key.versions.get(version) ?? (await versionOf(tools, key, version));
  const openingKey = record.derived ? deriveKey(loaded.key, opening.context, type.materialBytes, record.kdf) : loaded.key;
  return open(aead, openingKey, { payload, associatedData: opening.associatedData });
}

function checkVersion({ record }: LoadedKey, version: number): void {
  if (version > record.latestVersion) {
    throw new TransitError('invalid_ciphertext', 'invalid ciphertext: version is too new');
  }
  if (version < record.minDecryptionVersion) {
    throw new TransitError('key_version_unavailable', 'ciphertext or signature version is disallowed by policy (too old)');
  }
}
