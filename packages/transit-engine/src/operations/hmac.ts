import { createHmac, type KeyObject } from 'node:crypto';
import { inPieces } from '@transitd/event-loop';
import { hmacAlgorithm } from '../algorithms/hash-algorithm.ts';
import { TransitError } from '../errors.ts';
import { formatVersioned } from '../formats/ciphertext.ts';
import { shownName } from '../formats/shown-name.ts';
import { bytesOf } from './inputs.ts';
import { versionForMac } from './mac-version.ts';
import { type Item, type Operation, versionOf } from './operation.ts';

export interface HmacItem extends Item {
  /** base64; it may be empty, but has to be there. */
  readonly input: string | undefined;
  /** Of the request, for all its items alike; as is the next. */
  readonly algorithm: string;
  /** 0 is the latest. */
  readonly keyVersion: number;
}

export interface HmacResult {
  /** `svc:v1:…` */
  readonly hmac: string;
  readonly keyVersion: number;
}

export const hmacOperation: Pick<Operation<HmacItem, HmacResult>, 'run'> = {
  run: async (tools, key, { input, algorithm, keyVersion }) => {
    const hash = hmacAlgorithm(algorithm);
    if (hash === undefined) throw new TransitError('invalid_request', `unsupported algorithm "${shownName(algorithm)}"`);
    const version = versionForMac('HMAC', key, keyVersion);
    if (input === undefined) throw new TransitError('invalid_request', 'missing input for HMAC');
    const message = bytesOf(input);
    const { hmacKey } = key.versions.get(version) ?? (await versionOf(tools, key, version));
    return { hmac: formatVersioned(tools.prefix, version, await hmacOf(hash, hmacKey, message)), keyVersion: version };
  },
};

/** HMAC (FIPS 198-1, RFC 2104). @param hash - as OpenSSL calls it */
export async function hmacOf(hash: string, key: KeyObject, message: Uint8Array): Promise<Buffer> {
  const hmac = createHmac(hash, key);
  const work = inPieces(message, (piece) => hmac.update(piece));
  if (work !== undefined) await work;
  return hmac.digest();
}
