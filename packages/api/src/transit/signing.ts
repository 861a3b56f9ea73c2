import {
  base64,
  bool,
  boolean,
  type FieldSchema,
  type Fields,
  int,
  integer,
  type JsonValue,
  object,
  string,
  text,
} from '@transitd/http';
import {
  defaultHash,
  hashesSignedAsIs,
  hashNames,
  type KeyTraits,
  noHash,
  type SignRequest,
  saltLengthNamed,
  signatureHash,
} from '@transitd/transit-engine';
import { oneOrBatch } from '../operation/answers.ts';
import { saltLengthSpellings } from '../operation/spellings.ts';
import { setIn, withoutEffect } from './members-without-effect.ts';
import {
  batchOf,
  dataOperation,
  itemMembers,
  macLengths,
  keyName as name,
  type Use,
  wholeMacBytes,
} from './transit-operation.ts';

const { context, key_version } = itemMembers;
const input = base64('Input data; required unless `batch_input` is given');
const hmacHashes = ['sha1', ...hashNames];
const signatureHashes = [...hmacHashes, noHash];

export const hmac = dataOperation({
  name: 'hmac',
  path: { params: ['name', 'urlalgorithm'], required: 1 },
  about: 'Compute an HMAC',
  takes: {
    name,
    urlalgorithm: text('Hash algorithm', { oneOf: hmacHashes, aliasOf: 'algorithm' }),
    algorithm: text('Hash algorithm, if the path does not contain it', { oneOf: hmacHashes, default: defaultHash }),
    input,
    key_version,
    batch_input: batchOf('input', 'reference'),
  },
  answers: oneOrBatch(object({ hmac: string, key_version: integer })),
  capability: 'update',
  uses: ({ name, urlalgorithm, algorithm }) => {
    const value = urlalgorithm ?? algorithm ?? defaultHash;
    return [{ form: `${name}/${value}`, parameter: { names: ['algorithm', 'urlalgorithm'], value } }];
  },
  execute: (engine, values, { keyName }) =>
    engine.signing.hmac(keyName, {
      algorithm: values.urlalgorithm ?? values.algorithm,
      input: values.input,
      keyVersion: values.key_version,
      batchInput: values.batch_input,
    }),
  render: (result) => `"hmac":"${result.hmac}","key_version":${result.keyVersion}`,
});

export const cmac = dataOperation({
  name: 'cmac',
  path: { params: ['name', 'url_mac_length'], required: 1 },
  about: 'Compute a CMAC',
  takes: {
    name,
    url_mac_length: int('Length of the CMAC in bytes, for all items; 0 means all 16', {
      shape: macLengths,
      aliasOf: 'mac_length',
    }),
    mac_length: int('Length of the CMAC in bytes, if neither the path nor the item sets it', {
      default: 0,
      shape: macLengths,
    }),
    input,
    key_version,
    batch_input: batchOf('input', 'mac_length', 'reference'),
  },
  forAllItems: ['mac_length'],
  answers: oneOrBatch(object({ cmac: string, key_version: integer })),
  capability: 'update',
  uses: ({ name, url_mac_length, mac_length, batch_input }) => {
    const lengths = url_mac_length === undefined ? lengthsIn(batch_input, mac_length ?? 0) : [url_mac_length];
    return lengths
      .flatMap((length) => (length === 0 || length === wholeMacBytes ? [0, wholeMacBytes] : [length]))
      .map((length) => ({
        form: `${name}/${length}`,
        parameter: { names: ['mac_length', 'url_mac_length'], value: length },
      }));
  },
  execute: (engine, values, { keyName }) =>
    engine.signing.cmac(keyName, {
      macLengthForAll: values.url_mac_length,
      macLength: values.mac_length,
      input: values.input,
      keyVersion: values.key_version,
      batchInput: values.batch_input,
    }),
  render: (result) => `"cmac":"${result.cmac}","key_version":${result.keyVersion}`,
});

/** Fields that sign and verify share. */
const settings = {
  name,
  urlalgorithm: text('Hash algorithm', { oneOf: signatureHashes, aliasOf: 'hash_algorithm' }),
  hash_algorithm: text('Hash algorithm, if the path does not contain it', { oneOf: signatureHashes, default: defaultHash }),
  algorithm: text('Alias of `hash_algorithm` for HMACs only; no effect on signatures', {
    oneOf: signatureHashes,
    aliasOf: 'hash_algorithm',
  }),
  input,
  context,
  signature_context: base64('Context of Ed25519ctx and Ed25519ph'),
  prehashed: bool('The input is already a digest', { default: false }),
  signature_algorithm: text('Signature scheme, for RSA keys', { oneOf: ['pss', 'pkcs1v15'], default: 'pss' }),
  marshaling_algorithm: text('Signature encoding, for ECDSA keys', { oneOf: ['asn1', 'jws'], default: 'asn1' }),
  salt_length: text('Salt length of PSS: `auto`, `hash` or a number of bytes', {
    default: 'auto',
    shape: { pattern: '^(auto|hash|[0-9]{1,3})$' },
    spellings: saltLengthSpellings,
  }),
} as const satisfies FieldSchema;

type Settings = Fields<typeof settings>['values'] & { readonly batch_input?: JsonValue | undefined };

/**
 * Returns the hash of a signature. As in the peers, `algorithm` counts only if `hash_algorithm` was sent as an empty string; if
 * `hash_algorithm` was omitted, its default counts.
 */
const requestedHash = ({ urlalgorithm, hash_algorithm = defaultHash, algorithm }: Settings): string =>
  urlalgorithm || hash_algorithm || algorithm || defaultHash;

/** Returns the hash of an HMAC to verify. For HMACs `algorithm` counts, as in the request that created the HMAC. */
const hmacHash = ({ urlalgorithm, hash_algorithm, algorithm }: Settings): string =>
  urlalgorithm || hash_algorithm || algorithm || defaultHash;

const aliasWithoutEffect = "'algorithm' has no effect on signatures: set the hash in 'hash_algorithm' or in the path";

/**
 * Returns a warning if the requested hash is not used. Without the warning, a caller could misread the result of a verification with a
 * different hash.
 */
const ignoredHash = (values: Settings): readonly string[] => {
  const { algorithm = '' } = values;
  return algorithm === '' || algorithm === requestedHash(values) ? [] : [aliasWithoutEffect];
};

/**
 * Yields the requested hash. If it is `none` and the input is prehashed, the input may be a DigestInfo, which contains a hash name. The
 * result would be a signature with that hash, so that hash is yielded too.
 */
function* uses(values: Settings, hash: string): Generator<Use> {
  const use = (value: string): Use => ({
    form: `${values.name}/${value}`,
    parameter: { names: ['hash_algorithm', 'algorithm', 'urlalgorithm'], value },
  });
  const named = use(hash);
  yield named;
  yield* saltUses(values, hash);
  if (hash !== noHash || values.prehashed !== true) return;
  for (const input of inputsOf(values)) {
    yield named; // yielded for each input, so that the caller can check its time slice
    for (const signed of hashesSignedAsIs(Buffer.from(input, 'base64'))) yield use(signed);
  }
}

/** Yields the salt length of a PSS signature in its other spelling: `hash` is as long as the digest. */
function* saltUses({ salt_length: salt = '' }: Settings, hash: string): Generator<Use> {
  const digestBytes = signatureHash(hash)?.digestBytes;
  if (digestBytes === undefined) return;
  const length = saltLengthNamed(salt);
  const names = ['salt_length'];
  if (length === 'hash') yield { parameter: { names, value: digestBytes } };
  if (length === String(digestBytes)) yield { parameter: { names, value: 'hash' } };
}

function* inputsOf({ input, batch_input: batch }: Settings): Generator<string> {
  if (input !== undefined) yield input;
  if (!Array.isArray(batch)) return;
  for (const item of batch) {
    const given: unknown = typeof item === 'object' && item !== null ? Reflect.get(item, 'input') : undefined;
    if (typeof given === 'string') yield given;
  }
}

const isOf = ({ type }: KeyTraits, ...prefixes: readonly string[]): boolean => prefixes.some((prefix) => type.startsWith(prefix));

/** A hash that is not used: pure Ed25519 and the post-quantum schemes sign the message itself. */
const usesHash = (key: KeyTraits, { prehashed }: Settings): boolean =>
  !isOf(key, 'ml-dsa', 'hybrid') && (key.type !== 'ed25519' || prehashed === true);

/** Fields that only some keys use. The mechanism of a managed key may be any of RSA and ECDSA. */
const usedBy = {
  context: ({ derived }: KeyTraits) => derived,
  urlalgorithm: (key: KeyTraits, values: Settings) => values.urlalgorithm === defaultHash || usesHash(key, values),
  hash_algorithm: usesHash,
  signature_algorithm: (key: KeyTraits) => isOf(key, 'rsa-', 'managed_key'),
  salt_length: (key: KeyTraits, { signature_algorithm }: Settings) =>
    isOf(key, 'managed_key') || (isOf(key, 'rsa-') && signature_algorithm !== 'pkcs1v15'),
} as const;

const requestOf = (values: Settings): SignRequest => ({
  hashAlgorithm: requestedHash(values),
  input: values.input,
  context: values.context,
  signatureContext: values.signature_context,
  prehashed: values.prehashed,
  signatureAlgorithm: values.signature_algorithm,
  marshalingAlgorithm: values.marshaling_algorithm,
  saltLength: values.salt_length,
  batchInput: values.batch_input,
});

const path = { params: ['name', 'urlalgorithm'], required: 1 } as const;

export const sign = dataOperation({
  name: 'sign',
  path,
  about: 'Sign',
  takes: { ...settings, key_version, batch_input: batchOf('input', 'context', 'reference') },
  answers: oneOrBatch(
    object({ signature: string, key_version: integer }, { public_key: string }),
    object({ signature: string, key_version: integer }, { publickey: string }),
  ),

  capability: 'update',
  uses: (values) => uses(values, requestedHash(values)),
  ignored: ignoredHash,
  usedBy,
  execute: (engine, values, { keyName }) =>
    engine.signing.sign(keyName, { ...requestOf(values), keyVersion: values.key_version }),
  render: ({ signature, keyVersion, publicKey }, inBatch) => {
    const members = `"signature":"${signature}","key_version":${keyVersion}`;
    return publicKey === undefined
      ? members
      : `${members},"${inBatch ? 'publickey' : 'public_key'}":${JSON.stringify(publicKey)}`;
  },
  failedItem: '"key_version":0,',
});

export const verify = dataOperation({
  name: 'verify',
  path,
  about: 'Verify a signature, an HMAC or a CMAC; give exactly one of `signature`, `hmac` and `cmac`',
  takes: {
    ...settings,
    signature: itemMembers.signature,
    hmac: itemMembers.hmac,
    cmac: itemMembers.cmac,
    mac_length: int('Length of the CMAC in bytes, if it is shortened and the item does not say it', {
      default: 0,
      shape: macLengths,
    }),
    batch_input: batchOf('input', 'context', 'signature', 'hmac', 'cmac', 'mac_length', 'reference'),
  },
  answers: oneOrBatch(object({ valid: boolean })),

  capability: 'update',
  forAllItems: ['mac_length'],
  uses: (values) => uses(values, verifiedKind(values) === 'hmac' ? hmacHash(values) : requestedHash(values)),
  ignored: (values) => {
    const kind = verifiedKind(values);
    const unused = withoutEffect(setIn(settings, values, unusedToVerify[kind]), `on the ${kind} to verify`);
    return kind === 'signature' ? [...unused, ...ignoredHash(values)] : unused;
  },
  usedBy: Object.fromEntries(
    Object.entries(usedBy).map(([name, isUsed]) => [
      name,
      (key: KeyTraits, values: VerifyValues) => verifiedKind(values) !== 'signature' || isUsed(key, values),
    ]),
  ),
  execute: (engine, values, { keyName }) =>
    engine.signing.verify(keyName, {
      ...requestOf(values),
      hmacAlgorithm: hmacHash(values),
      signature: values.signature,
      hmac: values.hmac,
      cmac: values.cmac,
      macLength: values.mac_length,
    }),
  render: ({ valid }) => `"valid":${valid}`,
  failedItem: '"valid":false,',
});

type Kind = 'signature' | 'hmac' | 'cmac';
type VerifyValues = Settings & { readonly [Name in Kind]?: string | undefined } & { readonly mac_length?: number | undefined };

/**
 * Returns what the request verifies. In a batch, the first item with one of them decides: the engine refuses a batch that mixes HMACs with
 * signatures or CMACs.
 */
function verifiedKind(values: VerifyValues): Kind {
  const { batch_input: batch } = values;
  const kindIn = (given: object): Kind | undefined =>
    (['hmac', 'cmac', 'signature'] as const).find((kind) => isText(Reflect.get(given, kind)));
  if (batch === undefined || batch === null) return kindIn(values) ?? 'signature';
  if (!Array.isArray(batch)) return 'signature';
  for (const item of batch) {
    const kind = typeof item === 'object' && item !== null ? kindIn(item) : undefined;
    if (kind !== undefined) return kind;
  }
  return 'signature';
}

const ofSignatures = ['context', 'signature_context', 'prehashed', 'signature_algorithm', 'marshaling_algorithm', 'salt_length'];

/** Fields that have no effect on what is verified. */
const unusedToVerify: Readonly<Record<Kind, readonly string[]>> = {
  signature: ['mac_length'],
  hmac: [...ofSignatures, 'mac_length'],
  cmac: [...ofSignatures, 'urlalgorithm', 'hash_algorithm', 'algorithm'],
};

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

/** Returns the CMAC lengths that a request uses: its own length, and the lengths that its items set. */
function lengthsIn(batchInput: JsonValue | undefined, own: number): readonly number[] {
  const lengths = new Set([own]);
  if (Array.isArray(batchInput)) {
    for (const item of batchInput) {
      const length: unknown = typeof item === 'object' && item !== null ? Reflect.get(item, 'mac_length') : undefined;
      if (typeof length === 'number') lengths.add(length);
    }
  }
  return [...lengths];
}
