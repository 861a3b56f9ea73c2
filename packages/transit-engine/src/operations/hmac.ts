import { createHmac, type KeyObject } from 'node:crypto';
import { inPieces } from '@transitd/event-loop';
import { defaultHash, hmacAlgorithm } from '../algorithms/hash-algorithm.ts';
import { formatVersioned } from '../formats/ciphertext.ts';
import { printableName } from '../formats/printable-name.ts';
import { versionFor } from '../keys/key-version.ts';
import { TransitError } from '../values/errors.ts';
import { bytesOf } from './inputs.ts';
import type { Item, Operation } from './operation.ts';

export interface HmacItem extends Item {
  /** Required, but may be empty. */
  readonly input?: string | undefined;
}

interface Shared {
  readonly algorithm?: string | undefined;
  /** 0 selects the latest. */
  readonly keyVersion?: number | undefined;
}

export interface HmacRequest extends HmacItem, Shared {
  readonly items?: readonly HmacItem[] | undefined;
}

export interface HmacResult {
  /** `svc:v1:…` */
  readonly hmac: string;
  readonly keyVersion: number;
}

export const hmacOperation: Operation<HmacRequest, HmacItem, Shared, HmacResult> = {
  name: 'hmac',
  shared: (request) => request,
  async run(tools, key, { input }, { algorithm = defaultHash, keyVersion }) {
    const hash = hmacAlgorithm(algorithm);
    if (hash === undefined) throw new TransitError('not_supported', `unsupported algorithm "${printableName(algorithm)}"`);
    const version = versionFor('HMAC', key, keyVersion);
    const message = bytesOf(input, 'missing input for HMAC');
    const { hmacKey } = key.versions.get(version) ?? (await tools.keys.loadVersion(key, version));
    const mac = await hmacOf(hash, hmacKey, message);
    tools.tally?.add('signatures', version);
    return { hmac: formatVersioned(tools.prefix, version, mac), keyVersion: version };
  },
};

/** HMAC (FIPS 198-1, RFC 2104). @param hash - OpenSSL's name */
export async function hmacOf(hash: string, key: KeyObject, message: Uint8Array): Promise<Buffer> {
  const hmac = createHmac(hash, key);
  const pending = inPieces(message, (piece) => hmac.update(piece));
  if (pending !== undefined) await pending;
  return hmac.digest();
}
