import type { Aead } from '../algorithms/aead.ts';
import type { BlockCipher } from '../algorithms/cmac.ts';
import { printableName } from '../formats/printable-name.ts';
import { ed25519 } from '../key-pairs/ed25519.ts';
import { hybridPairs } from '../key-pairs/hybrid.ts';
import type { KeyPairScheme } from '../key-pairs/key-pair.ts';
import { mlDsaPairs, parameterSets } from '../key-pairs/ml-dsa.ts';
import { ecdsaSchemes, rsaSchemes } from '../key-pairs/schemes.ts';
import { TransitError } from '../values/errors.ts';

/** The abilities and sizes of one key type. All differences between types are in this table. */
export interface KeyType {
  /** The name in records. */
  readonly name: string;
  /** The name and parameters in the API, if one type of the API covers several types of this table. */
  readonly api?: { readonly type: string; readonly parameters: TypeParameters };
  /** Not for production. Creating such a key returns a warning. */
  readonly experimental?: true;
  readonly supportsEncryption: boolean;
  readonly supportsDecryption: boolean;
  readonly supportsSigning: boolean;
  readonly supportsDerivation: boolean;
  /** Bytes of key material of one version, unless the key has its own size; 0 for key pairs. */
  readonly materialBytes: number;
  /** Range of sizes in bytes, for types whose keys have their own size. */
  readonly sizes?: { readonly min: number; readonly max: number };
  /** Present on types that encrypt symmetrically. */
  readonly aead?: Aead;
  /** Present on types that make CMACs. */
  readonly cmac?: BlockCipher;
  /** Present on types whose versions are key pairs. All of them sign; RSA also encrypts. */
  readonly keyPair?: KeyPairScheme;
  /** Another system holds the key. A version stores the id of that key, and its public half if it has one. */
  readonly managed?: true;
  /** Maximum number of items of a batch, if results of the usual number would take too much memory. */
  readonly batchItemsMax?: number;
  /** The material is also the HMAC secret. Versions of other types have a separate one. */
  readonly materialIsHmacSecret?: true;
}

/** Parameters of a type in the API. */
export interface TypeParameters {
  readonly parameterSet: string;
  /** This and the next field are for hybrid keys only. */
  readonly hybridKeyTypePqc?: string;
  readonly hybridKeyTypeEc?: string;
}

const macOnly = {
  supportsEncryption: false,
  supportsDecryption: false,
  supportsSigning: false,
  supportsDerivation: false,
} as const;

const symmetric = {
  supportsEncryption: true,
  supportsDecryption: true,
  supportsSigning: false,
  supportsDerivation: true,
} as const;

const signing = { ...macOnly, supportsSigning: true, materialBytes: 0 } as const;
const signingAndEncryption = { ...signing, supportsEncryption: true, supportsDecryption: true } as const;

/** Bytes of a UUID. */
const managedIdBytes = 16;

const gcmFailure = 'cipher: message authentication failed';

/** Signatures of ML-DSA have 3 to 6 KB: so many take some 60 MB. */
const postQuantumItemsMax = 10_000;

const mlDsaTypes: readonly KeyType[] = parameterSets.map((set) => ({
  ...signing,
  name: `ml-dsa-${set.parameterSet}`,
  api: { type: 'ml-dsa', parameters: { parameterSet: set.parameterSet } },
  experimental: true,
  batchItemsMax: postQuantumItemsMax,
  keyPair: mlDsaPairs(set),
}));

const hybridCurves: readonly (readonly [name: string, scheme: KeyPairScheme])[] = [
  ['ecdsa-p256', ecdsaSchemes['P-256']],
  ['ecdsa-p384', ecdsaSchemes['P-384']],
  ['ecdsa-p521', ecdsaSchemes['P-521']],
  ['ed25519', ed25519],
];

const hybridTypes: readonly KeyType[] = parameterSets.flatMap((set) =>
  hybridCurves.map(([curve, scheme]) => ({
    ...signing,
    name: `hybrid-ml-dsa-${set.parameterSet}-${curve}`,
    api: {
      type: 'hybrid',
      parameters: { parameterSet: set.parameterSet, hybridKeyTypePqc: 'ml-dsa', hybridKeyTypeEc: curve },
    },
    experimental: true as const,
    batchItemsMax: postQuantumItemsMax,
    keyPair: hybridPairs(mlDsaPairs(set), scheme),
  })),
);

const types: readonly KeyType[] = [
  { ...symmetric, name: 'aes128-gcm96', materialBytes: 16, aead: { cipher: 'aes-128-gcm', authenticationFailure: gcmFailure } },
  { ...symmetric, name: 'aes256-gcm96', materialBytes: 32, aead: { cipher: 'aes-256-gcm', authenticationFailure: gcmFailure } },
  {
    ...symmetric,
    name: 'chacha20-poly1305',
    materialBytes: 32,
    aead: { cipher: 'chacha20-poly1305', authenticationFailure: 'chacha20poly1305: message authentication failed' },
  },
  { ...signing, name: 'ed25519', supportsDerivation: true, keyPair: ed25519 },
  { ...signing, name: 'ecdsa-p256', keyPair: ecdsaSchemes['P-256'] },
  { ...signing, name: 'ecdsa-p384', keyPair: ecdsaSchemes['P-384'] },
  { ...signing, name: 'ecdsa-p521', keyPair: ecdsaSchemes['P-521'] },
  { ...signingAndEncryption, name: 'rsa-2048', keyPair: rsaSchemes[2048] },
  { ...signingAndEncryption, name: 'rsa-3072', keyPair: rsaSchemes[3072] },
  { ...signingAndEncryption, name: 'rsa-4096', keyPair: rsaSchemes[4096] },
  { ...macOnly, name: 'hmac', materialBytes: 32, sizes: { min: 32, max: 512 }, materialIsHmacSecret: true },
  { ...macOnly, name: 'aes128-cmac', materialBytes: 16, cmac: { chained: 'aes-128-cbc', single: 'aes-128-ecb' } },
  { ...macOnly, name: 'aes256-cmac', materialBytes: 32, cmac: { chained: 'aes-256-cbc', single: 'aes-256-ecb' } },
  { ...signingAndEncryption, name: 'managed_key', materialBytes: managedIdBytes, managed: true },
  ...mlDsaTypes,
  ...hybridTypes,
];

const byName = new Map(types.map((type) => [type.name, type]));

/** Returns the type's name in the API. */
export const apiNameOf = ({ name, api }: Pick<KeyType, 'name' | 'api'>): string => api?.type ?? name;

/** The names of all types in the API. */
export const keyTypeNames: readonly string[] = [...new Set(types.map((type) => apiNameOf(type)))];

/** The type of a key when the request names none. */
export const defaultKeyType = 'aes256-gcm96';

/** Returns a type by its name in records. @throws TransitError `invalid_request` for an unknown name; case-sensitive */
export function keyType(name: string): KeyType {
  const type = byName.get(name);
  if (type === undefined) throw unknownType(name);
  return type;
}

/** A type as a caller names it. */
export interface TypeRequest extends Partial<{ readonly [Name in keyof TypeParameters]: TypeParameters[Name] | undefined }> {
  /** {@link defaultKeyType} when absent; case-sensitive. */
  readonly type?: string | undefined;
}

/**
 * Returns the type that a caller names. `mldsa-65` means `ml-dsa` with that parameter set.
 * @throws TransitError `invalid_request`
 */
export function requestedType(requested: TypeRequest): KeyType {
  const name = requested.type ?? defaultKeyType;
  if (name === 'ml-dsa') return mlDsaType(requested.parameterSet ?? '');
  const spelled = /^mldsa-(44|65|87)$/.exec(name)?.[1];
  if (spelled !== undefined) return mlDsaType(requested.parameterSet || spelled, spelled);
  if (name === 'hybrid') return hybridType(requested);
  const type = keyType(name);
  if (type.api !== undefined) throw unknownType(name);
  return type;
}

/** @param only - the parameter set in the type's name */
function mlDsaType(parameterSet: string, only = parameterSet): KeyType {
  const type = mlDsaTypes.find(({ api }) => api?.parameters.parameterSet === parameterSet);
  if (type === undefined || parameterSet !== only) throw new TransitError('invalid_request', invalidSet(parameterSet));
  return type;
}

function hybridType({ parameterSet = '', hybridKeyTypePqc: pqc = '', hybridKeyTypeEc: ec = '' }: TypeRequest): KeyType {
  const invalid = (reason: string): TransitError =>
    new TransitError('invalid_request', `invalid config for hybrid key: ${reason}`);
  if (pqc !== 'ml-dsa') throw invalid(`invalid PQC key type: ${printableName(pqc)}`);
  const ofSet = hybridTypes.filter(({ api }) => api?.parameters.parameterSet === parameterSet);
  if (ofSet.length === 0) throw invalid(invalidSet(parameterSet));
  const type = ofSet.find(({ api }) => api?.parameters.hybridKeyTypeEc === ec);
  if (type === undefined) throw invalid(`invalid key type for hybrid key: ${printableName(ec)}`);
  return type;
}

const invalidSet = (parameterSet: string): string => `invalid parameter set ${printableName(parameterSet)} for key type ml-dsa`;
const unknownType = (name: string): TransitError =>
  new TransitError('invalid_request', `unknown key type ${printableName(name)}`);

/** Whether a record may have this type name. */
export const isKeyType = (name: string): boolean => byName.has(name);

/** Whether a version of this type may have this many bytes of material. */
export function fitsType({ materialBytes, sizes, keyPair }: KeyType, bytes: number): boolean {
  if (keyPair !== undefined) return keyPair.fits(bytes);
  return sizes === undefined ? bytes === materialBytes : bytes >= sizes.min && bytes <= sizes.max;
}

/**
 * Whether a version of this type may have this material and public half. Only key pairs and managed keys have a public half. A version of a
 * key pair may lack the private half; a version of a managed key may lack the public half.
 */
export function fitsVersion(type: KeyType, { material, publicKey }: { material: Uint8Array; publicKey?: Uint8Array }): boolean {
  if (type.keyPair === undefined) return (type.managed === true || publicKey === undefined) && fitsType(type, material.length);
  return publicKey !== undefined && (material.length === 0 || fitsType(type, material.length));
}
