import { timingSafeEqual } from 'node:crypto';
import { hmacAlgorithm } from '../algorithms/hash-algorithm.ts';
import { TransitError } from '../errors.ts';
import { decodeBase64, decodeBase64Url } from '../formats/base64.ts';
import { parseVersioned } from '../formats/ciphertext.ts';
import { shownName } from '../formats/shown-name.ts';
import type { SigningOptions } from '../key-pairs/key-pair.ts';
import type { LoadedKey } from '../keys/key-cache.ts';
import { checkMakesCmacs, cmacUnder } from './cmac.ts';
import { hmacOf } from './hmac.ts';
import { bytesOf, signingContextOf } from './inputs.ts';
import { parseMac } from './mac-version.ts';
import { type Item, type Operation, type Tools, versionOf } from './operation.ts';
import { pairOf } from './pair-version.ts';

/** What a request may verify; one kind for all its items. */
export const verifiable = ['signature', 'hmac', 'cmac'] as const;
export type Verifiable = (typeof verifiable)[number];

export interface VerifyItem extends Item {
  /** base64; it may be empty, but has to be there. */
  readonly input: string | undefined;
  /** What kind of thing `value` is. */
  readonly kind: Verifiable;
  /** `svc:v1:…` */
  readonly value: string;
  /** base64; empty when absent. Of signatures only. */
  readonly context: string;
  /** Of the request, for all its items alike; as are the next, which signatures have. */
  readonly hashAlgorithm: string;
  readonly options?: SigningOptions;
}

export interface VerifyResult {
  readonly valid: boolean;
}

/** A shorter one would verify by guessing (NIST SP 800-38B appendix A.2 asks for a limit). */
const cmacBytesMin = 4;

export const verification: Pick<Operation<VerifyItem, VerifyResult>, 'run'> = {
  run: async (tools, key, { input, ...item }) => {
    if (input === undefined) throw new TransitError('invalid_request', 'missing input');
    return { valid: await checks[item.kind](tools, key, { ...item, input }) };
  },
};

const checks: Readonly<
  Record<Verifiable, (tools: Tools, key: LoadedKey, item: VerifyItem & { readonly input: string }) => Promise<boolean>>
> = {
  async signature(tools, key, { input, value, context, options }) {
    if (!key.type.supportsSigning) {
      throw new TransitError('invalid_request', `key type ${key.type.name} does not support verification`);
    }
    if (options === undefined) throw new Error('a signature is to be verified of which nothing is known');
    const { version, signature } = parseSignature(key, value, tools.prefix, options);
    const message = bytesOf(input);
    const { pair } = await pairOf(tools, key, version, signingContextOf(key, context));
    return pair.verify(message, signature, options);
  },

  async hmac(tools, key, { input, value, hashAlgorithm }) {
    const hash = hmacAlgorithm(hashAlgorithm);
    if (hash === undefined) throw new TransitError('invalid_request', `invalid hash algorithm "${shownName(hashAlgorithm)}"`);
    const { version, mac } = parseMac('HMAC', key, value, tools.prefix);
    const message = bytesOf(input);
    const { hmacKey } = key.versions.get(version) ?? (await versionOf(tools, key, version));
    return sameBytes(mac, await hmacOf(hash, hmacKey, message));
  },

  async cmac(tools, key, { input, value }) {
    checkMakesCmacs(key);
    const { version, mac } = parseMac('CMAC', key, value, tools.prefix);
    const message = bytesOf(input);
    const whole = await cmacUnder(key.versions.get(version) ?? (await versionOf(tools, key, version)), message);
    return mac.length >= cmacBytesMin && sameBytes(mac, whole.subarray(0, mac.length));
  },
};

/** Takes a signature to verify apart. @throws TransitError `invalid_ciphertext`, `key_version_unavailable` */
function parseSignature({ record }: LoadedKey, text: string, prefix: string, { marshaling }: SigningOptions) {
  const parsed = parseVersioned(text, prefix);
  if (typeof parsed === 'string') throw new TransitError('invalid_ciphertext', `invalid signature: ${parsed}`);
  const { version, payload } = parsed;
  if (version > record.latestVersion) throw new TransitError('invalid_ciphertext', 'invalid signature: version is too new');
  if (version < record.minDecryptionVersion) {
    throw new TransitError('key_version_unavailable', 'ciphertext or signature version is disallowed by policy (too old)');
  }
  const signature = marshaling === 'jws' ? decodeBase64Url(payload) : decodedOrNot(payload);
  if (signature === undefined) throw new TransitError('invalid_ciphertext', 'invalid base64 signature value');
  return { version, signature };
}

function decodedOrNot(payload: string): Buffer | undefined {
  try {
    return decodeBase64(payload);
  } catch (error) {
    if (error instanceof TransitError) return undefined;
    throw error;
  }
}

/** The length is no secret, the content is compared in constant time. */
const sameBytes = (given: Uint8Array, expected: Uint8Array): boolean =>
  given.length === expected.length && timingSafeEqual(given, expected);
