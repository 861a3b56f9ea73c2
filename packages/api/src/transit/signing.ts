import { base64, bool, boolean, int, integer, object, string, text } from '@transitd/http';
import { defaultHash, hashesSignedAsIs, type KeyTraits, noHash, saltLengthNamed, signatureHash } from '@transitd/transit-engine';
import { oneOrBatch } from '../operation/answers.ts';
import { saltLengthSpellings } from '../operation/spellings.ts';
import { type DataSchema, hashesWithSha1, itemFields, macLengths, wholeMacBytes } from './data-fields.ts';
import { dataOperation, keyName as name, type Use } from './transit-operation.ts';

const { input, context, mac_length, reference } = itemFields;
/** The version that signs, or makes the MACs, is the same for all items. */
const { perItem: _everyItem, ...key_version } = itemFields.key_version;
const signatureHashes = [...hashesWithSha1, noHash];

/** Returns the hash of an HMAC to compute. */
const macHash = ({ urlalgorithm, algorithm = defaultHash }: Pick<Signed, 'urlalgorithm' | 'algorithm'>): string =>
  urlalgorithm ?? algorithm;
const ofMac = { weakens: true, inForce: macHash } as const;

export const hmac = dataOperation({
  name: 'hmac',
  path: { params: ['name', 'urlalgorithm'], required: 1 },
  about: 'Compute an HMAC',
  takes: {
    name,
    urlalgorithm: { ...text('Hash algorithm', { oneOf: hashesWithSha1, aliasOf: 'algorithm' }), ...ofMac },
    algorithm: {
      ...text('Hash algorithm, if the path does not contain it', { oneOf: hashesWithSha1, default: defaultHash }),
      ...ofMac,
    },
    input,
    key_version,
    reference,
  },
  answers: oneOrBatch(object({ hmac: string, key_version: integer })),
  capability: 'update',
  uses: (request) => {
    const value = macHash(request);
    return [{ form: `${request.name}/${value}`, parameter: { names: ['algorithm', 'urlalgorithm'], value } }];
  },
  execute: (engine, request, { keyName, tally }) =>
    engine.signing.hmac(keyName, { ...request, algorithm: macHash(request) }, tally),
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
    mac_length: {
      ...mac_length,
      inForce: ({ urlMacLength }: { readonly urlMacLength?: number }) => (urlMacLength === 0 ? wholeMacBytes : urlMacLength),
    },
    input,
    key_version,
    reference,
  },
  answers: oneOrBatch(object({ cmac: string, key_version: integer })),
  capability: 'update',
  uses: ({ name, urlMacLength, macLength = 0, items = [{ macLength }] }) => {
    const lengths = items.map((item) => urlMacLength ?? item.macLength ?? macLength);
    return [...new Set(lengths)]
      .flatMap((length) => (length === 0 || length === wholeMacBytes ? [0, wholeMacBytes] : [length]))
      .map((length) => ({
        form: `${name}/${length}`,
        parameter: { names: ['mac_length', 'url_mac_length'], value: length },
      }));
  },
  execute: (engine, request, { keyName, tally }) =>
    engine.signing.cmac(keyName, { ...request, macLengthForAll: request.urlMacLength }, tally),
  render: (result) => `"cmac":"${result.cmac}","key_version":${result.keyVersion}`,
});

const kinds = ['hmac', 'cmac', 'signature'] as const;
type Kind = (typeof kinds)[number];

/** The values of a request to sign or to verify that this file uses itself. */
export interface Signed {
  readonly name?: string | undefined;
  readonly urlalgorithm?: string | undefined;
  readonly hashAlgorithm?: string | undefined;
  readonly algorithm?: string | undefined;
  readonly prehashed?: boolean | undefined;
  readonly saltLength?: string | undefined;
  readonly signatureAlgorithm?: string | undefined;
  readonly input?: string | undefined;
  readonly items?: readonly ({ readonly input: string | undefined } & Proofs)[];
}
type Proofs = { readonly [Name in Kind]?: string | undefined };

/**
 * Returns the hash in force. For HMACs `algorithm` counts, as in the request that created the HMAC. For signatures it counts, as in the
 * peers, only if `hash_algorithm` was sent as an empty string; if `hash_algorithm` was omitted, its default counts.
 */
function requestedHash(request: Signed & Proofs): string {
  const { urlalgorithm, hashAlgorithm = verifiedKind(request) === 'hmac' ? '' : defaultHash, algorithm } = request;
  return urlalgorithm || hashAlgorithm || algorithm || defaultHash;
}

/**
 * Returns what the request verifies. In a batch, the first item with one of them decides: the engine refuses a batch that mixes HMACs with
 * signatures or CMACs.
 */
function verifiedKind({ items, ...single }: Signed & Proofs): Kind {
  for (const given of items ?? [single]) {
    const kind = kinds.find((each) => given[each] !== undefined && given[each] !== '');
    if (kind !== undefined) return kind;
  }
  return 'signature';
}

const isOf = ({ type }: KeyTraits, ...prefixes: readonly string[]): boolean => prefixes.some((prefix) => type.startsWith(prefix));

/** A hash that is not used: pure Ed25519 and the post-quantum schemes sign the message itself. An HMAC always uses it. */
const usesHash = (key: KeyTraits, request: Signed & Proofs): boolean =>
  verifiedKind(request) !== 'signature' ||
  (!isOf(key, 'ml-dsa', 'hybrid') && (key.type !== 'ed25519' || request.prehashed === true));

const hashInForce = { weakens: true, inForce: requestedHash, unusedFor: ['cmac'] } as const;
const unusedFor = ['hmac', 'cmac'] as const;

/** Fields that sign and verify share. The mechanism of a managed key may be any of RSA and ECDSA. */
const settings = {
  name,
  urlalgorithm: {
    ...text('Hash algorithm', { oneOf: signatureHashes, aliasOf: 'hash_algorithm' }),
    ...hashInForce,
    usedBy: (key: KeyTraits, request: Signed) => request.urlalgorithm === defaultHash || usesHash(key, request),
  },
  hash_algorithm: {
    ...text('Hash algorithm, if the path does not contain it', { oneOf: signatureHashes, default: defaultHash }),
    ...hashInForce,
    usedBy: usesHash,
  },
  algorithm: {
    ...text('Alias of `hash_algorithm` for HMACs only; no effect on signatures', {
      oneOf: signatureHashes,
      aliasOf: 'hash_algorithm',
    }),
    ...hashInForce,
  },
  input,
  context,
  signature_context: { ...base64('Context of Ed25519ctx and Ed25519ph'), weakens: true, unusedFor },
  prehashed: { ...bool('The input is already a digest', { default: false }), unusedFor },
  signature_algorithm: {
    ...text('Signature scheme, for RSA keys', { oneOf: ['pss', 'pkcs1v15'], default: 'pss' }),
    unusedFor,
    usedBy: (key: KeyTraits) => isOf(key, 'rsa-', 'managed_key'),
  },
  marshaling_algorithm: {
    ...text('Signature encoding, for ECDSA keys', { oneOf: ['asn1', 'jws'], default: 'asn1' }),
    unusedFor,
  },
  salt_length: {
    ...text('Salt length of PSS: `auto`, `hash` or a number of bytes', {
      default: 'auto',
      shape: { pattern: '^(auto|hash|[0-9]{1,3})$' },
      spellings: saltLengthSpellings,
    }),
    unusedFor,
    usedBy: (key: KeyTraits, { signatureAlgorithm }: Signed) =>
      isOf(key, 'managed_key') || (isOf(key, 'rsa-') && signatureAlgorithm !== 'pkcs1v15'),
  },
  reference,
} as const satisfies DataSchema;

/**
 * Yields the requested hash. If it is `none` and the input is prehashed, the input may be a DigestInfo, which contains a hash name. The
 * result would be a signature with that hash, so that hash is yielded too.
 */
function* uses(request: Signed & Proofs): Generator<Use> {
  const hash = requestedHash(request);
  const use = (value: string): Use => ({
    form: `${request.name}/${value}`,
    parameter: { names: ['hash_algorithm', 'algorithm', 'urlalgorithm'], value },
  });
  const named = use(hash);
  yield named;
  yield* saltUses(request, hash);
  if (hash !== noHash || request.prehashed !== true) return;
  for (const { input } of request.items ?? [request]) {
    if (input === undefined) continue;
    yield named; // yielded for each input, so that the caller can check its time slice
    for (const signed of hashesSignedAsIs(Buffer.from(input, 'base64'))) yield use(signed);
  }
}

/** Yields the salt length of a PSS signature in its other spelling: `hash` is as long as the digest. */
function* saltUses({ saltLength: salt = '' }: Signed, hash: string): Generator<Use> {
  const digestBytes = signatureHash(hash)?.digestBytes;
  if (digestBytes === undefined) return;
  const length = saltLengthNamed(salt);
  const names = ['salt_length'];
  if (length === 'hash') yield { parameter: { names, value: digestBytes } };
  if (length === String(digestBytes)) yield { parameter: { names, value: 'hash' } };
}

const path = { params: ['name', 'urlalgorithm'], required: 1 } as const;

export const sign = dataOperation({
  name: 'sign',
  path,
  about: 'Sign',
  takes: { ...settings, key_version },
  answers: oneOrBatch(
    object({ signature: string, key_version: integer }, { public_key: string }),
    object({ signature: string, key_version: integer }, { publickey: string }),
  ),

  capability: 'update',
  uses,
  execute: (engine, request, { keyName, tally }) =>
    engine.signing.sign(keyName, { ...request, hashAlgorithm: requestedHash(request) }, tally),
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
    signature: itemFields.signature,
    hmac: itemFields.hmac,
    cmac: itemFields.cmac,
    mac_length: { ...mac_length, about: 'Length of the CMAC in bytes, if it is shortened' },
  },
  answers: oneOrBatch(object({ valid: boolean })),

  capability: 'update',
  uses,
  kindOf: verifiedKind,
  execute: (engine, request, { keyName, tally }) =>
    engine.signing.verify(keyName, { ...request, hashAlgorithm: requestedHash(request) }, tally),
  render: ({ valid }) => `"valid":${valid}`,
  failedItem: '"valid":false,',
});
