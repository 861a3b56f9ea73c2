import type { Aead } from '../algorithms/aead.ts';
import type { BlockCipher } from '../algorithms/cmac.ts';
import { TransitError } from '../errors.ts';
import { shownName } from '../formats/shown-name.ts';
import { ed25519 } from '../key-pairs/ed25519.ts';
import { hybridPairs } from '../key-pairs/hybrid.ts';
import type { KeyPairScheme } from '../key-pairs/key-pair.ts';
import { mlDsaPairs, parameterSets } from '../key-pairs/ml-dsa.ts';
import { ecdsaSchemes, rsaSchemes } from '../key-pairs/schemes.ts';

/** What a key of one type is and can do. Whatever differs between types is read from here. */
export interface KeyType {
  /** What records call it. */
  readonly name: string;
  /** What callers call it, where several of these types are one to them and differ in parameters. */
  readonly api?: { readonly type: string; readonly parameters: TypeParameters };
  /** Not for production: whoever makes such a key is told. */
  readonly experimental?: true;
  readonly supportsEncryption: boolean;
  readonly supportsDecryption: boolean;
  readonly supportsSigning: boolean;
  readonly supportsDerivation: boolean;
  /** Bytes of key material of one version, unless the key has a size of its own; 0 for key pairs, whose form differs. */
  readonly materialBytes: number;
  /** Sizes that a key may have, in bytes, where it may have one of its own. */
  readonly sizes?: { readonly min: number; readonly max: number };
  /** Encrypts with it. */
  readonly aead?: Aead;
  /** Makes CMACs with it. */
  readonly cmac?: BlockCipher;
  /** A version is a pair of keys: it signs with it, and RSA encrypts. */
  readonly keyPair?: KeyPairScheme;
  /** Another system holds the key: a version is the id of it, and its public half where it has one. */
  readonly managed?: true;
  /** The material is the secret of HMAC operations; every other type has one beside it. */
  readonly materialIsHmacSecret?: true;
}

/** What a caller gives beside the type's name. */
export interface TypeParameters {
  readonly parameterSet: string;
  /** This and the next on hybrid keys only. */
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

/** A UUID, 16 bytes. */
const managedIdBytes = 16;

const gcmFailure = 'cipher: message authentication failed';

const mlDsaTypes: readonly KeyType[] = parameterSets.map((set) => ({
  ...signing,
  name: `ml-dsa-${set.parameterSet}`,
  api: { type: 'ml-dsa', parameters: { parameterSet: set.parameterSet } },
  experimental: true,
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

/** What callers may name a type. */
export const keyTypeNames: readonly string[] = [...new Set(types.map((type) => apiNameOf(type)))];

/** The type of a key for which none was asked. */
export const defaultKeyType = 'aes256-gcm96';

/** By the name that records have. @throws TransitError `invalid_request` for a name without a row; case counts */
export function keyType(name: string): KeyType {
  const type = byName.get(name);
  if (type === undefined) throw unknownType(name);
  return type;
}

/** How callers name a type. */
export interface TypeRequest extends Partial<{ readonly [Name in keyof TypeParameters]: TypeParameters[Name] | undefined }> {
  /** {@link defaultKeyType} when absent; case counts. */
  readonly type?: string | undefined;
}

/**
 * The type that a caller means. `mldsa-65` is another spelling of `ml-dsa` with that parameter set.
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

/** @param only - the one that the type's own name says */
function mlDsaType(parameterSet: string, only = parameterSet): KeyType {
  const type = mlDsaTypes.find(({ api }) => api?.parameters.parameterSet === parameterSet);
  if (type === undefined || parameterSet !== only) throw new TransitError('invalid_request', invalidSet(parameterSet));
  return type;
}

function hybridType({ parameterSet = '', hybridKeyTypePqc: pqc = '', hybridKeyTypeEc: ec = '' }: TypeRequest): KeyType {
  const invalid = (reason: string): TransitError =>
    new TransitError('invalid_request', `invalid config for hybrid key: ${reason}`);
  if (pqc !== 'ml-dsa') throw invalid(`invalid PQC key type: ${shownName(pqc)}`);
  const ofSet = hybridTypes.filter(({ api }) => api?.parameters.parameterSet === parameterSet);
  if (ofSet.length === 0) throw invalid(invalidSet(parameterSet));
  const type = ofSet.find(({ api }) => api?.parameters.hybridKeyTypeEc === ec);
  if (type === undefined) throw invalid(`invalid key type for hybrid key: ${shownName(ec)}`);
  return type;
}

const invalidSet = (parameterSet: string): string => `invalid parameter set ${shownName(parameterSet)} for key type ml-dsa`;
const unknownType = (name: string): TransitError => new TransitError('invalid_request', `unknown key type ${shownName(name)}`);

/** Returns what callers call the type. */
export const apiNameOf = ({ name, api }: Pick<KeyType, 'name' | 'api'>): string => api?.type ?? name;

/** Whether a stored name can be read by this program. */
export const isKeyType = (name: string): boolean => byName.has(name);

/** Whether a version of a key of this type can have that much material. */
export function fitsType({ materialBytes, sizes, keyPair }: KeyType, bytes: number): boolean {
  if (keyPair !== undefined) return keyPair.fits(bytes);
  return sizes === undefined ? bytes === materialBytes : bytes >= sizes.min && bytes <= sizes.max;
}

/** Whether material and public half can be those of one version: only key pairs have the second, and may have it alone, and managed keys, which may lack it. */
export function fitsVersion(type: KeyType, { material, publicKey }: { material: Uint8Array; publicKey?: Uint8Array }): boolean {
  if (type.keyPair === undefined) return (type.managed === true || publicKey === undefined) && fitsType(type, material.length);
  return publicKey !== undefined && (material.length === 0 || fitsType(type, material.length));
}
