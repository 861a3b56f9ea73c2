import { defaultHash, noHash, signatureHash } from '../algorithms/hash-algorithm.ts';
import { decodeBase64 } from '../formats/base64.ts';
import { printableName } from '../formats/printable-name.ts';
import type { SigningOptions } from '../key-pairs/key-pair.ts';
import { TransitError } from '../values/errors.ts';

/** How to make or verify a signature. An absent or empty field has its default. */
export interface SignatureSettings {
  /** Applies to HMACs too. */
  readonly hashAlgorithm?: string | undefined;
  readonly prehashed?: boolean | undefined;
  /** base64. */
  readonly signatureContext?: string | undefined;
  /** `pss`, the default, or `pkcs1v15`. */
  readonly signatureAlgorithm?: string | undefined;
  /** `auto`, the default, `hash`, or a number of bytes. */
  readonly saltLength?: string | undefined;
  /** `asn1`, the default, or `jws`. */
  readonly marshalingAlgorithm?: string | undefined;
}

/** Applies the defaults. @throws TransitError `invalid_request` for settings that no key type supports */
export function signingOptions(settings: SignatureSettings): SigningOptions {
  const { prehashed = false, signatureContext = '' } = settings;
  const hash = settings.hashAlgorithm || defaultHash;
  const signatureAlgorithm = settings.signatureAlgorithm || 'pss';
  const marshaling = settings.marshalingAlgorithm || 'asn1';
  if (hash !== noHash && signatureHash(hash) === undefined) throw refusal(`invalid hash algorithm "${printableName(hash)}"`);
  if (marshaling !== 'asn1' && marshaling !== 'jws') throw refusal(`invalid marshaling type "${printableName(marshaling)}"`);
  const saltLength = saltLengthOf(settings.saltLength || 'auto');
  if (hash === noHash && !(prehashed && signatureAlgorithm === 'pkcs1v15')) {
    throw refusal('hash_algorithm=none requires both prehashed=true and signature_algorithm=pkcs1v15');
  }
  return { hash, prehashed, signatureAlgorithm, marshaling, saltLength, signatureContext: signatureContextOf(signatureContext) };
}

function saltLengthOf(text: string): SigningOptions['saltLength'] {
  const length = saltLength(text);
  if (length === undefined) throw refusal(`salt length neither 'auto', 'hash', nor an int: ${printableName(text)}`);
  if (length !== 'auto' && length !== 'hash' && length < -1) throw refusal(`salt length is invalid: ${length}`);
  return length;
}

/** Returns a salt length as the caller means it: −1 is `hash` and 0 is `auto`. Undefined for any other text. */
function saltLength(text: string): SigningOptions['saltLength'] | undefined {
  const word = text.toLowerCase();
  if (word === 'auto' || word === 'hash') return word;
  if (!/^[+-]?\d{1,15}$/.test(text)) return undefined;
  const bytes = Number(text);
  return bytes === -1 ? 'hash' : bytes === 0 ? 'auto' : bytes;
}

/** Returns the canonical spelling of a salt length: `auto`, `hash` or a decimal number; undefined for an invalid one. */
export const saltLengthNamed = (text: string): string | undefined => saltLength(text || 'auto')?.toString();

function signatureContextOf(text: string): Uint8Array {
  try {
    return decodeBase64(text);
  } catch (error) {
    throw new TransitError('invalid_request', 'failed to base64-decode signature_context', { cause: error });
  }
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
