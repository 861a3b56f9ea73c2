import { timingSafeEqual } from 'node:crypto';
import { TransitError } from '../errors.ts';
import { hmacAlgorithm } from '../hash-algorithm.ts';
import type { LoadedKey } from '../key-cache.ts';
import { checkMakesCmacs, cmacUnder } from './cmac.ts';
import { hmacOf } from './hmac.ts';
import { bytesOf } from './inputs.ts';
import { parseMac } from './mac-version.ts';
import { type Item, type Operation, type Tools, versionOf } from './operation.ts';

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
  /** Of the request, for all its items alike. */
  readonly hashAlgorithm: string;
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
  async signature(_tools, { type }) {
    // No type of today signs.
    throw new TransitError('invalid_request', `key type ${type.name} does not support verification`);
  },

  async hmac(tools, key, { input, value, hashAlgorithm }) {
    const hash = hmacAlgorithm(hashAlgorithm);
    if (hash === undefined) throw new TransitError('invalid_request', `invalid hash algorithm "${hashAlgorithm}"`);
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

/** The length is no secret, the content is compared in constant time. */
const sameBytes = (given: Uint8Array, expected: Uint8Array): boolean =>
  given.length === expected.length && timingSafeEqual(given, expected);
