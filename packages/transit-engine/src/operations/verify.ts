import { timingSafeEqual } from 'node:crypto';
import { blockBytes } from '../algorithms/cmac.ts';
import { defaultHash, hmacAlgorithm } from '../algorithms/hash-algorithm.ts';
import { decodeBase64, decodeBase64Url } from '../formats/base64.ts';
import { parseVersioned } from '../formats/ciphertext.ts';
import { printableName } from '../formats/printable-name.ts';
import type { SigningOptions } from '../key-pairs/key-pair.ts';
import type { LoadedKey } from '../keys/key-cache.ts';
import { TransitError } from '../values/errors.ts';
import type { ItemMembers } from './batch.ts';
import { checkMacLength, checkMakesCmacs, cmacUnder } from './cmac.ts';
import { hmacOf } from './hmac.ts';
import { bytesOf, signingContextOf } from './inputs.ts';
import { parseMac } from './mac-text.ts';
import { batchOf, type Item, isBatch, type Operation, type Tools, type Work } from './operation.ts';
import { type SignatureSettings, signingOptions } from './signature-settings.ts';
import { signingPair } from './signing-pair.ts';

/** A request verifies one of these kinds, the same for all its items. */
const verifiable = ['signature', 'hmac', 'cmac'] as const;
export type Verifiable = (typeof verifiable)[number];

/** One of `signature`, `hmac` and `cmac`, or a batch of one kind. */
export type VerifyRequest = SignatureSettings & { readonly [Kind in Verifiable]?: string | undefined } & {
  /** Hash of an HMAC; `hashAlgorithm` when absent. */
  readonly hmacAlgorithm?: string | undefined;
  readonly input?: string | undefined;
  readonly context?: string | undefined;
  /** Bytes of the CMAC; 0 for the length that the key demands. */
  readonly macLength?: number | undefined;
  readonly batchInput?: unknown;
};

export interface VerifyItem extends Item {
  /** base64; required, but may be empty. */
  readonly input: string | undefined;
  /** The kind of `value`. */
  readonly kind: Verifiable;
  /** `svc:v1:…` */
  readonly value: string;
  /** base64; empty when absent. Used for signatures only. */
  readonly context: string;
  /** Bytes of the CMAC, if the request says them; otherwise 0. Used for CMACs only. */
  readonly macLength: number;
  /** The same for all items of a request. */
  readonly hashAlgorithm: string;
  /** Settings of signatures; the same for all items of a request. */
  readonly options?: SigningOptions;
}

export interface VerifyResult {
  readonly valid: boolean;
}

export const verifyOperation: Operation<VerifyRequest, VerifyItem, VerifyResult> = {
  name: 'verify',
  workOf(request) {
    if (isBatch(request)) return readBatch(request);
    const { input, context = '', macLength = 0 } = request;
    const [kind, ...more] = kindsIn([request]);
    if (kind === undefined) {
      throw new TransitError('invalid_request', "none of 'signature', 'hmac' and 'cmac' was given to verify");
    }
    if (more.length > 0) throw new TransitError('invalid_request', "provide one of 'signature', 'hmac' or 'cmac'");
    const value = request[kind] ?? '';
    return { item: { input, context, macLength, kind, value, ...settingsFor(kind, request), reference: '' } };
  },
  async run(tools, key, item) {
    return { valid: await checks[item.kind](tools, key, item) };
  },
};

/** Reads items that all verify the same kind. */
async function readBatch(request: VerifyRequest): Promise<Work<VerifyItem>> {
  const { items } = await batchOf(readItem, request);
  const kinds = kindsIn(items);
  const [kind] = kinds;
  if (kind === undefined) {
    throw new TransitError('invalid_request', "no batch_input elements have 'signature', 'hmac' or 'cmac'");
  }
  if (kinds.length > 1) {
    const refusal = "elements of batch_input must all provide either 'signature', 'hmac' or 'cmac'";
    throw new TransitError('invalid_request', refusal);
  }
  if (!items.every((item) => item[kind] !== undefined)) {
    throw new TransitError('invalid_request', `some elements of batch_input are missing '${kind}'`);
  }
  const settings = settingsFor(kind, request);
  return {
    items: items.map(({ input, context, macLength, reference, [kind]: value }) => ({
      input,
      context,
      macLength: macLength || (request.macLength ?? 0),
      kind,
      value: value ?? '',
      ...settings,
      reference,
    })),
  };
}

const readItem = (members: ItemMembers) => ({
  input: members.optionalText('input'),
  context: members.text('context'),
  signature: members.optionalText('signature'),
  hmac: members.optionalText('hmac'),
  cmac: members.optionalText('cmac'),
  macLength: members.integer('mac_length'),
  reference: members.text('reference'),
});

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
function settingsFor(kind: Verifiable, settings: VerifyRequest): Pick<VerifyItem, 'hashAlgorithm' | 'options'> {
  const hashAlgorithm = (kind === 'hmac' && settings.hmacAlgorithm) || settings.hashAlgorithm || defaultHash;
  return kind === 'signature' ? { hashAlgorithm, options: signingOptions(settings) } : { hashAlgorithm };
}

const checks: Readonly<Record<Verifiable, (tools: Tools, key: LoadedKey, item: VerifyItem) => Promise<boolean>>> = {
  async signature(tools, key, { input, value, context, options }) {
    if (!key.type.supportsSigning) {
      throw new TransitError('not_supported', `key type ${key.type.name} does not support verification`);
    }
    if (options === undefined) throw new Error('the signature to verify has no signing options');
    const { version, signature } = parseSignature(key, value, tools.prefix, options);
    const message = bytesOf(input);
    const { pair } = await signingPair(tools, key, version, signingContextOf(key, context));
    return pair.verify(message, signature, options);
  },

  async hmac(tools, key, { input, value, hashAlgorithm }) {
    const hash = hmacAlgorithm(hashAlgorithm);
    if (hash === undefined) throw new TransitError('not_supported', `invalid hash algorithm "${printableName(hashAlgorithm)}"`);
    const { version, mac } = parseMac('HMAC', key, value, tools.prefix);
    const message = bytesOf(input);
    const { hmacKey } = key.versions.get(version) ?? (await tools.keys.loadVersion(key, version));
    return sameBytes(mac, await hmacOf(hash, hmacKey, message));
  },

  async cmac(tools, key, { input, value, macLength }) {
    checkMakesCmacs(key);
    const { version, mac } = parseMac('CMAC', key, value, tools.prefix);
    checkStrength(key, mac.length, macLength);
    const message = bytesOf(input);
    const whole = await cmacUnder(key.versions.get(version) ?? (await tools.keys.loadVersion(key, version)), message);
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
