import { allows } from '@transitd/access';
import { bool, int, integer, list, object, string, text, unsupportedField } from '@transitd/http';
import {
  datakeysMax,
  defaultHash,
  defaultKeyType,
  type EncryptResult,
  hashOf,
  isKeyName,
  keyTypeNames,
  printableName,
  random,
  TransitError,
} from '@transitd/transit-engine';
import { data, oneOrBatch } from '../operation/answers.ts';
import type { Params, Route } from '../operation/operation.ts';
import { itemFields } from './data-fields.ts';
import { hashFields, hashResult, randomFields, randomPath, randomResult, sourcesUsed } from './random-and-hash.ts';
import { cmac, hmac, sign, verify } from './signing.ts';
import { type DataRoute, dataOperation, type Members } from './transit-operation.ts';

/** A ciphertext needs no JSON escaping: it contains only ASCII characters that JSON does not escape. */
const ciphertextJson = ({ parts: [head, base64], keyVersion }: EncryptResult): Members => [
  `"ciphertext":"${head}`,
  base64,
  `","key_version":${keyVersion}`,
];

const ciphertextAnswer = object({ ciphertext: string, key_version: integer });
const { plaintext, ciphertext, context, associated_data, nonce, key_version, reference } = itemFields;
const { padding_scheme, hash_algorithm } = itemFields;
const named = { params: ['name'], required: 1 } as const;

const encrypt = dataOperation({
  name: 'encrypt',
  path: named,
  mayWrite: true,
  about: 'Encrypt data; creates a missing key if the caller has the capability `create`',
  takes: {
    plaintext,
    context,
    associated_data,
    padding_scheme,
    key_version,
    nonce,
    hash_algorithm,
    type: {
      ...text('Type of a key created by this request', { oneOf: keyTypeNames, default: defaultKeyType }),
      usedBy: (key, { type }) => type === key.type,
    },
    convergent_encryption: {
      ...bool('Enable convergent encryption for a key created by this request'),
      usedBy: ({ convergent }) => convergent,
    },
    reference,
  },
  answers: oneOrBatch(ciphertextAnswer),
  execute: (engine, request, { keyName, principal, path, tally }) => {
    const [mayCreate, mayUpdate] = [allows(principal, 'create', path), allows(principal, 'update', path)];
    return engine.ciphertexts.encrypt(keyName, { ...request, mayCreate, mayUpdate }, tally);
  },
  render: ciphertextJson,
});

const decrypt = dataOperation({
  name: 'decrypt',
  path: named,
  about: 'Decrypt',
  takes: { ciphertext, context, associated_data, padding_scheme, nonce, hash_algorithm, reference },
  answers: oneOrBatch(object({ plaintext: string })),
  capability: 'update',
  execute: (engine, request, { keyName, tally }) => engine.ciphertexts.decrypt(keyName, request, tally),
  render: ({ plaintext }) => ['"plaintext":"', plaintext, '"'],
  failedItem: '"plaintext":"",',
});

const rewrap = dataOperation({
  name: 'rewrap',
  path: named,
  about: 'Re-encrypt a ciphertext with the latest key version, without revealing the plaintext',
  takes: {
    ciphertext,
    context,
    associated_data,
    key_version,
    nonce,
    decrypt_padding_scheme: itemFields.decrypt_padding_scheme,
    decrypt_hash_algorithm: itemFields.decrypt_hash_algorithm,
    encrypt_padding_scheme: itemFields.encrypt_padding_scheme,
    encrypt_hash_algorithm: itemFields.encrypt_hash_algorithm,
    hash_algorithm: {
      ...unsupportedField('string', 'set decrypt_hash_algorithm and encrypt_hash_algorithm'),
      weakens: true,
    },
    reference,
  },
  answers: oneOrBatch(ciphertextAnswer),
  capability: 'update',
  execute: (engine, request, { keyName, tally }) => engine.ciphertexts.rewrap(keyName, request, tally),
  render: ciphertextJson,
});

const typed = { params: ['type', 'name'], required: 2 } as const;
/** Fields of one data key and of several. */
const dataKeyFields = {
  type: text('`plaintext` to return the wrapped and the plaintext key, `wrapped` to return only the wrapped key', {
    required: true,
    oneOf: ['plaintext', 'wrapped'],
  }),
  bits: int('Length of a data key in bits: 128, 256 or 512', { default: 256, shape: { enum: [128, 256, 512] } }),
  context,
  associated_data,
  key_version,
  padding_scheme,
  hash_algorithm,
} as const;

const plaintextJson = ({ plaintext }: { readonly plaintext?: string }): string =>
  plaintext === undefined ? '' : `,"plaintext":"${plaintext}"`;

const datakey = dataOperation({
  name: 'datakey',
  path: typed,
  about: 'Generate a data key, encrypted with a named key',
  takes: { ...dataKeyFields, nonce },
  answers: data(object({ ciphertext: string, key_version: integer }, { plaintext: string })),
  capability: 'update',
  execute: (engine, request, { keyName, tally }) =>
    engine.ciphertexts.datakey(keyName, { ...request, kind: request.type ?? '' }, tally),
  render: (result) => `"ciphertext":"${result.ciphertext}","key_version":${result.keyVersion}${plaintextJson(result)}`,
});

const datakeys = dataOperation({
  name: 'datakeys',
  path: typed,
  about: 'Generate several data keys, encrypted with a named key',
  takes: { ...dataKeyFields, count: int('Number of data keys', { required: true, min: 1, max: datakeysMax }) },
  answers: data(object({ key_pairs: list(object({ ciphertext: string }, { plaintext: string })), key_version: integer })),
  capability: 'update',
  deniedBy: ({ type, name }) => [`datakey/${type}/${name}`],
  execute: (engine, request, { keyName, tally }) =>
    engine.ciphertexts.datakeys(keyName, { ...request, kind: request.type ?? '' }, tally),
  render: ({ keyPairs, keyVersion }) => {
    const pairs = keyPairs.map((pair) => `{"ciphertext":"${pair.ciphertext}"${plaintextJson(pair)}}`);
    return `"key_pairs":[${pairs.join()}],"key_version":${keyVersion}`;
  },
});

const hash = dataOperation({
  name: 'hash',
  path: { params: ['urlalgorithm'], required: 0 },
  about: 'Compute a hash',
  takes: {
    ...hashFields,
    algorithm: { ...hashFields.algorithm, inForce: ({ urlalgorithm }: { readonly urlalgorithm?: string }) => urlalgorithm },
  },
  answers: data(hashResult),
  capability: 'update',
  uses: ({ urlalgorithm, algorithm }) => {
    const value = urlalgorithm ?? algorithm ?? defaultHash;
    return [{ form: value, parameter: { names: ['algorithm', 'urlalgorithm'], value } }];
  },
  execute: (_engine, { urlalgorithm, algorithm, input, format }) =>
    hashOf({ input, algorithm: urlalgorithm ?? algorithm, format }),
  render: ({ sum }) => `"sum":"${sum}"`,
});

const randomBytes = dataOperation({
  name: 'random',
  path: { params: ['source', 'urlbytes'], required: 0 },
  about: 'Generate random bytes',
  takes: {
    ...randomFields,
    bytes: {
      ...randomFields.bytes,
      inForce: ({ urlbytes }: { readonly urlbytes?: string }) => (urlbytes === undefined ? undefined : byteCount(urlbytes)),
    },
    urlbytes: text('Number of random bytes', { aliasOf: 'bytes', shape: { pattern: '^[0-9]{1,6}$' } }),
  },
  answers: data(randomResult),
  capability: 'update',
  pathFields: randomPath,
  uses: ({ source = 'platform', urlbytes, bytes = 32 }) => {
    const count = urlbytes === undefined ? bytes : byteCount(urlbytes);
    return [
      ...sourcesUsed(source).flatMap((value) => [
        { form: value, parameter: { names: ['source'], value } },
        { form: `${value}/${count}` },
      ]),
      { form: String(count), parameter: { names: ['bytes', 'urlbytes'], value: count } },
    ];
  },
  execute: (_engine, { source, urlbytes, bytes, format }, { sealRandom }) =>
    random({ source, format, bytes: urlbytes === undefined ? bytes : byteCount(urlbytes) }, sealRandom),
  render: (result) => `"random_bytes":"${result.randomBytes}"`,
  warnings: (result) => result.warnings,
});

function byteCount(text: string): number {
  if (/^[+-]?\d{1,9}$/.test(text)) return Number(text);
  throw new TransitError('invalid_request', `error parsing url-set byte count: ${printableName(text)} is not an integer`);
}

/** Operations on data, by the first word of their path. */
export const dataOperations = {
  encrypt,
  decrypt,
  rewrap,
  datakey,
  datakeys,
  hmac,
  cmac,
  sign,
  verify,
  hash,
  random: randomBytes,
} as const satisfies Readonly<Record<string, DataRoute>>;

/** Routes of operations on data, below a mount. */
export const transitDataRoutes: readonly Route[] = Object.entries<DataRoute>(dataOperations).flatMap(
  ([word, { operation: POST, params, required }]) =>
    params
      .concat('')
      .map((_, count) => [word, ...params.slice(0, count).map((param) => `:${param}`)].join('/'))
      .slice(required)
      .map((path) => ({
        path,
        accepts: ({ name }: Params) => name === undefined || isKeyName(name),
        operations: { POST },
      })),
);
