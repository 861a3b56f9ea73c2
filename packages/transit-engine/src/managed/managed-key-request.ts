import { printableName, printablePath } from '../formats/printable-name.ts';
import { TransitError } from '../values/errors.ts';
import {
  type ManagedKeyRecord,
  type Pkcs11Curve,
  type Pkcs11Mechanism,
  pkcs11Curves,
  pkcs11Mechanisms,
} from './managed-key-record.ts';
import type { ManagedUsage } from './provider.ts';

/** A request to create or change a managed key. An absent field keeps its value or, for a new key, has none. */
export interface ManagedKeyRequest {
  readonly library?: string | undefined;
  /** A number, decimal or hexadecimal with `0x`. */
  readonly slot?: string | undefined;
  readonly tokenLabel?: string | undefined;
  readonly pin?: string | undefined;
  readonly keyLabel?: string | undefined;
  /** Hexadecimal, with or without `0x`. */
  readonly keyId?: string | undefined;
  /** A name, `CKM_…`, or its number. */
  readonly mechanism?: string | undefined;
  readonly keyBits?: number | undefined;
  readonly curve?: string | undefined;
  readonly allowGenerateKey?: boolean | undefined;
  readonly anyMount?: boolean | undefined;
  readonly usages?: readonly string[] | undefined;
}

const textBytesMax = 255;
/** Longest key id; PKCS#11 modules commonly use shorter ones. */
const keyIdBytesMax = 64;
const [rsaBits, aesBits] = [new Set([2048, 3072, 4096]), new Set([128, 256])];

/** Whether a text is a valid name of a managed key. The name is the last segment of paths. */
export const isManagedKeyName = (name: string): boolean => /^\w(?:[\w.-]{0,126}\w)?$/.test(name);

/**
 * Returns the record for a request.
 * @param present - the existing record. It must continue to refer to the same key, because versions of keys depend on that key
 * @param libraries - names of the libraries in the configuration
 * @throws TransitError `invalid_request`
 */
export function managedKeyRecord(
  identity: Pick<ManagedKeyRecord, 'id' | 'name'>,
  request: ManagedKeyRequest,
  { present, libraries }: { readonly present?: ManagedKeyRecord | undefined; readonly libraries: readonly string[] },
): ManagedKeyRecord {
  const library = text('library', request.library) ?? present?.library;
  const pin = text('pin', request.pin) ?? present?.pin;
  const mechanism = requestedMechanism(request.mechanism) ?? present?.mechanism;
  if (library === undefined) throw missing('library');
  if (!libraries.includes(library)) throw refusal(`no PKCS#11 library is configured under the name ${printablePath(library)}`);
  if (pin === undefined) throw missing('pin');
  if (mechanism === undefined) throw missing('mechanism');
  const place = requestedPlace(request, present);
  const key = requestedKey(request, mechanism, present);
  const allowGenerateKey = request.allowGenerateKey ?? present?.allowGenerateKey ?? false;
  const anyMount = request.anyMount ?? present?.anyMount ?? false;
  const usages = requestedUsages(request.usages, mechanism) ?? present?.usages ?? usagesOf(mechanism);
  const record = { ...identity, library, ...place, pin, ...key, mechanism, allowGenerateKey, anyMount, usages };
  if (present !== undefined) checkSameKey(present, record);
  return record;
}

function requestedPlace(request: ManagedKeyRequest, present: ManagedKeyRecord | undefined) {
  const slot = requestedSlot(request.slot) ?? present?.slot;
  const tokenLabel = text('token_label', request.tokenLabel) ?? present?.tokenLabel;
  if (slot === undefined && tokenLabel === undefined) throw refusal('one of slot and token_label is required');
  return { ...(slot !== undefined && { slot }), ...(tokenLabel !== undefined && { tokenLabel }) };
}

function requestedKey(request: ManagedKeyRequest, mechanism: Pkcs11Mechanism, present: ManagedKeyRecord | undefined) {
  const keyLabel = text('key_label', request.keyLabel) ?? present?.keyLabel;
  const keyId = requestedKeyId(request.keyId) ?? present?.keyId;
  if (keyLabel === undefined && keyId === undefined) throw refusal('one of key_label and key_id is required');
  const keyBits = requestedKeyBits(request.keyBits, mechanism) ?? present?.keyBits;
  const curve = requestedCurve(request.curve, mechanism) ?? present?.curve;
  return {
    ...(keyLabel !== undefined && { keyLabel }),
    ...(keyId !== undefined && { keyId }),
    ...(keyBits !== undefined && { keyBits }),
    ...(curve !== undefined && { curve }),
  };
}

/** @throws TransitError for a change that would make versions refer to another key */
function checkSameKey(present: ManagedKeyRecord, record: ManagedKeyRecord): void {
  const members = { mechanism: 'mechanism', keyLabel: 'key_label', keyId: 'key_id' } as const;
  for (const field of ['mechanism', 'keyLabel', 'keyId'] as const) {
    if (present[field] !== record[field])
      throw refusal(`${members[field]} of a managed key cannot be changed: create another managed key`);
  }
}

function requestedMechanism(requested = ''): Pkcs11Mechanism | undefined {
  if (requested === '') return undefined;
  const mechanism = mechanismNamed(requested);
  if (mechanism !== undefined) return mechanism;
  throw refusal(`mechanism has to be one of ${Object.keys(pkcs11Mechanisms).join(', ')}`);
}

/** Returns a mechanism by its name or its number; undefined for an unsupported one. */
export function mechanismNamed(text: string): Pkcs11Mechanism | undefined {
  const number = /^(?:0x[0-9a-f]{1,8}|\d{1,10})$/i.test(text) ? Number(text) : undefined;
  const names = Object.keys(pkcs11Mechanisms).filter(isMechanism);
  return names.find((name) => name === text || pkcs11Mechanisms[name].number === number);
}

const isMechanism = (name: string): name is Pkcs11Mechanism => Object.hasOwn(pkcs11Mechanisms, name);

function requestedSlot(requested = ''): number | undefined {
  if (requested === '') return undefined;
  const slot = /^(?:0x[0-9a-f]{1,12}|\d{1,15})$/i.test(requested) ? Number(requested) : Number.NaN;
  if (!(slot < 2 ** 48)) throw refusal('slot is not a number'); // NaN included
  return slot;
}

function requestedKeyId(requested = ''): string | undefined {
  if (requested === '') return undefined;
  const digits = keyIdDigits(requested);
  if (!/^(?:[0-9a-f]{2})+$/.test(digits) || digits.length > 2 * keyIdBytesMax) {
    throw refusal(`key_id has to be hexadecimal, of 1 to ${keyIdBytesMax} bytes`);
  }
  return digits;
}

/** Returns a key id as it is stored: hexadecimal digits in lower case, without `0x`. */
export const keyIdDigits = (text: string): string => text.replace(/^0x/i, '').toLowerCase();

function requestedKeyBits(requested: number | undefined, mechanism: Pkcs11Mechanism): number | undefined {
  if (requested === undefined || requested === 0) return undefined;
  const { algorithm } = pkcs11Mechanisms[mechanism];
  const sizes = algorithm === 'aes-gcm' ? aesBits : algorithm === 'ecdsa' ? new Set<number>() : rsaBits;
  if (!sizes.has(requested)) throw refusal(`key_bits ${requested} is not supported for ${mechanism}`);
  return requested;
}

function requestedCurve(requested = '', mechanism: Pkcs11Mechanism): Pkcs11Curve | undefined {
  if (requested === '') return undefined;
  const curve = pkcs11Curves.find((each) => each === requested);
  if (curve === undefined || mechanism !== 'CKM_ECDSA')
    throw refusal(`curve ${printableName(requested)} is not supported for ${mechanism}`);
  return curve;
}

const usagesOf = (mechanism: Pkcs11Mechanism): readonly ManagedUsage[] =>
  pkcs11Mechanisms[mechanism].algorithm === 'aes-gcm' ? ['encrypt', 'decrypt'] : ['sign', 'verify'];

function requestedUsages(
  requested: readonly string[] | undefined,
  mechanism: Pkcs11Mechanism,
): readonly ManagedUsage[] | undefined {
  if (requested === undefined || requested.length === 0) return undefined;
  const possible = usagesOf(mechanism);
  const wrong = requested.find((usage) => !possible.some((each) => each === usage));
  if (wrong !== undefined) throw refusal(`keys for ${mechanism} only support the usages ${possible.join(' and ')}`);
  return possible.filter((usage) => requested.includes(usage));
}

function text(member: string, requested = ''): string | undefined {
  if (requested === '') return undefined;
  if (Buffer.byteLength(requested) > textBytesMax || /\p{Cc}/u.test(requested) || !requested.isWellFormed()) {
    throw refusal(`${member} has to be a text of at most ${textBytesMax} bytes without control characters`);
  }
  return requested;
}

const missing = (member: string): TransitError => refusal(`${member} is required`);
const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
