import { parseJsonObject } from '../formats/json-object.ts';
import { DamagedRecord } from '../values/errors.ts';
import type { ManagedAlgorithm, ManagedUsage } from './provider.ts';

/** PKCS#11 mechanisms by name: the algorithm, and the number that callers may use instead of the name. */
export const pkcs11Mechanisms = {
  CKM_RSA_PKCS: { algorithm: 'rsa-pkcs1v15', number: 0x0001 },
  CKM_RSA_PKCS_PSS: { algorithm: 'rsa-pss', number: 0x000d },
  CKM_ECDSA: { algorithm: 'ecdsa', number: 0x1041 },
  CKM_AES_GCM: { algorithm: 'aes-gcm', number: 0x1087 },
} as const satisfies Record<string, { readonly algorithm: ManagedAlgorithm; readonly number: number }>;
export type Pkcs11Mechanism = keyof typeof pkcs11Mechanisms;

export const pkcs11Curves = ['P256', 'P384', 'P521'] as const;
export type Pkcs11Curve = (typeof pkcs11Curves)[number];

/** A managed key as configured by the operator: its location, the PIN of its token, its use. The barrier encrypts the record. */
export interface ManagedKeyRecord {
  /** UUID, referenced by versions of keys. */
  readonly id: string;
  readonly name: string;
  /** Name of a library in the configuration. */
  readonly library: string;
  readonly slot?: number;
  readonly tokenLabel?: string;
  readonly pin: string;
  readonly keyLabel?: string;
  /** CKA_ID in hexadecimal. */
  readonly keyId?: string;
  readonly mechanism: Pkcs11Mechanism;
  /** Length in bits of a key to generate, for RSA and AES. */
  readonly keyBits?: number;
  /** Curve of a key to generate, for ECDSA. */
  readonly curve?: Pkcs11Curve;
  /** A missing key is generated in the token. */
  readonly allowGenerateKey: boolean;
  /** All mounts may use the key, without listing it. */
  readonly anyMount: boolean;
  readonly usages: readonly ManagedUsage[];
}

const formatVersion = 1;

/** Encodes JSON in UTF-8 with a format number. */
export const encodeManagedKeyRecord = (record: ManagedKeyRecord): Uint8Array =>
  Buffer.from(JSON.stringify({ format: formatVersion, ...record }));

/** @throws DamagedRecord for anything that {@link encodeManagedKeyRecord} did not write */
export function decodeManagedKeyRecord(bytes: Uint8Array): ManagedKeyRecord {
  const { format, ...fields } = parseJsonObject(bytes);
  if (format !== formatVersion) throw new DamagedRecord('a managed key has a format unknown to this program');
  if (!isRecord(fields)) throw new DamagedRecord('a managed key lacks a field');
  return fields;
}

function isRecord(fields: object): fields is ManagedKeyRecord {
  const { id, name, library, pin, mechanism, allowGenerateKey, anyMount, usages } = fields as Partial<ManagedKeyRecord>;
  return (
    [id, name, library, pin].every((text) => typeof text === 'string') &&
    typeof mechanism === 'string' &&
    Object.hasOwn(pkcs11Mechanisms, mechanism) &&
    typeof allowGenerateKey === 'boolean' &&
    typeof anyMount === 'boolean' &&
    Array.isArray(usages)
  );
}
