import { timingSafeEqual } from 'node:crypto';
import { blockBytes } from '../algorithms/cmac.ts';
import { defaultHash, hmacAlgorithm } from '../algorithms/hash-algorithm.ts';
import { decodeBase64, decodeBase64Url } from '../formats/base64.ts';
import { parseVersioned } from '../formats/ciphertext.ts';
import { printableName } from '../formats/printable-name.ts';
import type { SigningOptions } from '../key-pairs/key-pair.ts';
import type { LoadedKey } from '../keys/key-cache.ts';
import { checkEnabled } from '../keys/key-record.ts';
import { TransitError } from '../values/errors.ts';
import { checkMacLength, checkMakesCmacs, cmacUnder } from './cmac.ts';
import { hmacOf } from './hmac.ts';
import { bytesOf, signingContextOf } from './inputs.ts';
import { parseMac } from './mac-text.ts';
import type { Item, Operation, Tools } from './operation.ts';
import { type SignatureSettings, signingOptions } from './signature-settings.ts';
import { signingPair } from './signing-pair.ts';

/** A request verifies one of these kinds, the same for all its items. */
const verifiable = ['signature', 'hmac', 'cmac'] as const;
export type Verifiable = (typeof verifiable)[number];

/** Has one of `signature`, `hmac` and `cmac`. */
export type VerifyItem = Item & { readonly [Kind in Verifiable]?: string | undefined } & {
  /** Required, but may be empty. */
  readonly input?: string | undefined;
  /** Used for signatures only. */
  readonly context?: string | undefined;
  /** Bytes of the CMAC; 0 for the length that the key demands. Absent in an item: that of the request. */
  readonly macLength?: number | undefined;
};

/** All items are of one kind. */
export type VerifyRequest = SignatureSettings &
  VerifyItem & {
    readonly items?: readonly VerifyItem[] | undefined;
  };

interface Shared {
  readonly kind: Verifiable;
  /** Bytes of the CMACs of items that do not say it; 0 for the length that the key demands. */
  readonly macLength: number;
  readonly hashAlgorithm: string;
  /** For signatures only. */
  readonly options?: SigningOptions;
}

export interface VerifyResult {
  readonly valid: boolean;
}

export const verifyOperation: Operation<VerifyRequest, VerifyItem, Shared, VerifyResult> = {
  name: 'verify',
  shared(request) {
    const kind = request.items === undefined ? kindOf(request) : kindOfAll(request.items);
    return { kind, macLength: request.macLength ?? 0, ...settingsFor(kind, request) };
  },
  async run(tools, key, item, shared) {
    return { valid: await checks[shared.kind](tools, key, item, shared) };
  },
};

/** Returns the kind of a single input. @throws TransitError `invalid_request` */
function kindOf(request: VerifyRequest): Verifiable {
  const [kind, ...more] = kindsIn([request]);
  if (kind === undefined) {
    throw new TransitError('invalid_request', "none of 'signature', 'hmac' and 'cmac' was given to verify");
  }
  if (more.length > 0) throw new TransitError('invalid_request', "provide one of 'signature', 'hmac' or 'cmac'");
  return kind;
}

/** Returns the kind of all items. @throws TransitError `invalid_request` */
function kindOfAll(items: readonly VerifyItem[]): Verifiable {
  const [kind, ...more] = kindsIn(items);
  if (kind === undefined) {
    throw new TransitError('invalid_request', "no batch_input elements have 'signature', 'hmac' or 'cmac'");
  }
  if (more.length > 0) {
    const refusal = "elements of batch_input must all provide either 'signature', 'hmac' or 'cmac'";
    throw new TransitError('invalid_request', refusal);
  }
  if (!items.every((item) => item[kind] !== undefined)) {
    throw new TransitError('invalid_request', `some elements of batch_input are missing '${kind}'`);
  }
  return kind;
}

/**
 * Returns the kinds that the request gives; a valid request gives exactly one. Some clients send members that they do not use as empty
 * strings, so an empty string counts only if no other kind is given. The empty string is then refused as an invalid value, not as a missing
 * one, as the peers do.
 */
function kindsIn(given: readonly { readonly [Kind in Verifiable]?: string | undefined }[]): readonly Verifiable[] {
  const kinds = verifiable.filter((kind) => given.some((each) => each[kind] !== undefined && each[kind] !== ''));
  return kinds.length > 0 ? kinds : verifiable.filter((kind) => given.some((each) => each[kind] !== undefined)).slice(0, 1);
}

/** MACs use no setting except the hash; the other settings are checked for signatures only. */
function settingsFor(kind: Verifiable, settings: VerifyRequest): Pick<Shared, 'hashAlgorithm' | 'options'> {
  const hashAlgorithm = settings.hashAlgorithm || defaultHash;
  return kind === 'signature' ? { hashAlgorithm, options: signingOptions(settings) } : { hashAlgorithm };
}

type Check = (tools: Tools, key: LoadedKey, item: VerifyItem, shared: Shared) => Promise<boolean>;
const checks: Readonly<Record<Verifiable, Check>> = {
  async signature(tools, key, { input, signature: value = '', context }, { options }) {
    if (!key.type.supportsSigning) {
      throw new TransitError('not_supported', `key type ${key.type.name} does not support verification`);
    }
    if (options === undefined) throw new Error('the signature to verify has no signing options');
    const { version, signature } = parseSignature(key, value, tools.prefix, options);
    const message = bytesOf(input);
    const { pair } = await signingPair(tools, key, version, signingContextOf(key, context));
    const valid = await pair.verify(message, signature, options);
    tools.tally?.add('verifications', version);
    return valid;
  },

  async hmac(tools, key, { input, hmac: value = '' }, { hashAlgorithm }) {
    const hash = hmacAlgorithm(hashAlgorithm);
    if (hash === undefined) throw new TransitError('not_supported', `invalid hash algorithm "${printableName(hashAlgorithm)}"`);
    const { version, mac } = parseMac('HMAC', key, value, tools.prefix);
    const message = bytesOf(input);
    const { hmacKey } = key.versions.get(version) ?? (await tools.keys.loadVersion(key, version));
    const expected = await hmacOf(hash, hmacKey, message);
    tools.tally?.add('verifications', version);
    return sameBytes(mac, expected);
  },

  async cmac(tools, key, { input, cmac: value = '', macLength }, shared) {
    checkMakesCmacs(key);
    const { version, mac } = parseMac('CMAC', key, value, tools.prefix);
    checkStrength(key, mac.length, macLength ?? shared.macLength);
    const message = bytesOf(input);
    const whole = await cmacUnder(key.versions.get(version) ?? (await tools.keys.loadVersion(key, version)), message);
    tools.tally?.add('verifications', version);
    return sameBytes(mac, whole.subarray(0, mac.length));
  },
};

/**
 * Refuses a CMAC whose length its sender has chosen: half of all 32-bit values are tried in hours. The request may say a length, which a
 * policy can deny, or the key may be configured for shorter ones.
 * @param expected - bytes, as the request says; 0 if it does not
 * @throws TransitError `invalid_request`, never a verdict: a shortened CMAC is neither valid nor forged
 */
function checkStrength({ record }: LoadedKey, bytes: number, expected: number): void {
  checkMacLength(expected);
  const isLongEnough = expected === 0 ? bytes >= record.minMacLength && bytes <= blockBytes : bytes === expected;
  if (isLongEnough) return;
  const demanded = expected === 0 ? `the key demands ${record.minMacLength}` : `mac_length is ${expected}`;
  const remedy = expected === 0 ? ': set mac_length in the request, or min_mac_length of the key' : '';
  throw new TransitError('invalid_request', `the CMAC has ${bytes} bytes, and ${demanded}${remedy}`);
}

/** Parses a signature to verify. @throws TransitError `invalid_ciphertext`, `key_version_unavailable` */
function parseSignature({ record }: LoadedKey, text: string, prefix: string, { marshaling }: SigningOptions) {
  const parsed = parseVersioned(text, prefix);
  if (typeof parsed === 'string') throw new TransitError('invalid_ciphertext', `invalid signature: ${parsed}`);
  const { version, payload } = parsed;
  if (version > record.latestVersion) throw new TransitError('invalid_ciphertext', 'invalid signature: version is too new');
  if (version < record.minDecryptionVersion) {
    throw new TransitError('key_version_unavailable', 'ciphertext or signature version is disallowed by policy (too old)');
  }
  checkEnabled(record, version);
  const signature = marshaling === 'jws' ? decodeBase64Url(payload) : decodedOrUndefined(payload);
  if (signature === undefined) throw new TransitError('invalid_ciphertext', 'invalid base64 signature value');
  return { version, signature };
}

function decodedOrUndefined(payload: string): Buffer | undefined {
  try {
    return decodeBase64(payload);
  } catch (error) {
    if (error instanceof TransitError) return undefined;
    throw error;
  }
}

/** The length is not secret; the content is compared in constant time. */
const sameBytes = (given: Uint8Array, expected: Uint8Array): boolean =>
  given.length === expected.length && timingSafeEqual(given, expected);
