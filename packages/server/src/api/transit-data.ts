import { allows } from '@transitd/access';
import { defaultHash, hashOf, isKeyName, random, randomSources, shownName, TransitError } from '@transitd/transit-engine';
import type { Route } from './operation.ts';
import { type DataRoute, operation } from './transit-operation.ts';
import { cmac, hmac, sign, verify } from './transit-signing.ts';

/** A ciphertext is ASCII without anything that JSON escapes; so is a plaintext in base64. */
const ciphertextJson = ({ ciphertext, keyVersion }: { readonly ciphertext: string; readonly keyVersion: number }): string =>
  `"ciphertext":"${ciphertext}","key_version":${keyVersion}`;

const named = { params: ['name'], required: 1 } as const;

const encrypt = operation({
  name: 'encrypt',
  path: named,
  mayWrite: true,
  schema: {
    plaintext: 'string',
    context: 'string',
    associated_data: 'string',
    padding_scheme: 'string',
    key_version: 'int',
    nonce: 'string',
    type: 'string',
    convergent_encryption: 'bool',
    batch_input: 'any',
  },
  ask: (engine, asked, { keyName, body, principal, path }) =>
    engine.encryption.encrypt(keyName, {
      plaintext: body['plaintext'] === null ? '' : asked.plaintext, // null is an empty plaintext here, not a missing one
      context: asked.context,
      associatedData: asked.associated_data,
      paddingScheme: asked.padding_scheme,
      keyVersion: asked.key_version,
      nonce: asked.nonce,
      type: asked.type,
      convergentEncryption: asked.convergent_encryption,
      batchInput: asked.batch_input,
      mayCreate: allows(principal, 'create', path),
      mayUpdate: allows(principal, 'update', path),
    }),
  render: ciphertextJson,
});

const decrypt = operation({
  name: 'decrypt',
  path: named,
  schema: {
    ciphertext: 'string',
    context: 'string',
    associated_data: 'string',
    padding_scheme: 'string',
    nonce: 'string',
    batch_input: 'any',
  },
  capability: 'update',
  ask: (engine, asked, { keyName }) =>
    engine.encryption.decrypt(keyName, {
      ciphertext: asked.ciphertext,
      context: asked.context,
      associatedData: asked.associated_data,
      paddingScheme: asked.padding_scheme,
      nonce: asked.nonce,
      batchInput: asked.batch_input,
    }),
  render: ({ plaintext }) => `"plaintext":"${plaintext}"`,
  failedItem: '"plaintext":"",',
});

const rewrap = operation({
  name: 'rewrap',
  path: named,
  schema: {
    ciphertext: 'string',
    context: 'string',
    key_version: 'int',
    nonce: 'string',
    decrypt_padding_scheme: 'string',
    encrypt_padding_scheme: 'string',
    batch_input: 'any',
  },
  capability: 'update',
  ask: (engine, asked, { keyName }) =>
    engine.encryption.rewrap(keyName, {
      ciphertext: asked.ciphertext,
      context: asked.context,
      keyVersion: asked.key_version,
      nonce: asked.nonce,
      decryptPaddingScheme: asked.decrypt_padding_scheme,
      encryptPaddingScheme: asked.encrypt_padding_scheme,
      batchInput: asked.batch_input,
    }),
  render: ciphertextJson,
});

const datakey = operation({
  name: 'datakey',
  path: { params: ['type', 'name'], required: 2 },
  schema: {
    type: 'string',
    bits: 'int',
    context: 'string',
    associated_data: 'string',
    key_version: 'int',
    nonce: 'string',
    padding_scheme: 'string',
  },
  capability: 'update',
  ask: (engine, asked, { keyName }) =>
    engine.encryption.datakey(keyName, {
      kind: asked.type ?? '',
      bits: asked.bits,
      context: asked.context,
      associatedData: asked.associated_data,
      keyVersion: asked.key_version,
      nonce: asked.nonce,
      paddingScheme: asked.padding_scheme,
    }),
  render: (result) =>
    result.plaintext === undefined ? ciphertextJson(result) : `${ciphertextJson(result)},"plaintext":"${result.plaintext}"`,
});

const hash = operation({
  name: 'hash',
  path: { params: ['urlalgorithm'], required: 0 },
  schema: { urlalgorithm: 'string', algorithm: 'string', input: 'string', format: 'string' },
  capability: 'update',
  spelledOut: ({ urlalgorithm, algorithm }) => [urlalgorithm ?? algorithm ?? defaultHash],
  ask: (_engine, { urlalgorithm, algorithm, input, format }) => hashOf({ input, algorithm: urlalgorithm ?? algorithm, format }),
  render: ({ sum }) => `"sum":"${sum}"`,
});

const randomBytes = operation({
  name: 'random',
  path: { params: ['source', 'urlbytes'], required: 0 },
  schema: { source: 'string', urlbytes: 'string', bytes: 'int', format: 'string' },
  capability: 'update',
  // One segment alone is a source if it names one, else a number of bytes.
  pathFields: ({ source, urlbytes }): Readonly<Record<string, string>> => {
    if (source === undefined) return {};
    if (urlbytes !== undefined) return { source, urlbytes };
    return randomSources.includes(source) ? { source } : { urlbytes: source };
  },
  spelledOut: ({ source = 'platform', urlbytes, bytes = 32 }) => {
    const count = urlbytes === undefined ? bytes : byteCount(urlbytes);
    return [source, String(count), `${source}/${count}`];
  },
  ask: async (_engine, { source, urlbytes, bytes, format }) =>
    random({ source, format, bytes: urlbytes === undefined ? bytes : byteCount(urlbytes) }),
  render: (result) => `"random_bytes":"${result.randomBytes}"`,
  warnings: (result) => result.warnings,
});

function byteCount(text: string): number {
  if (/^[+-]?\d{1,9}$/.test(text)) return Number(text);
  throw new TransitError('invalid_request', `error parsing url-set byte count: ${shownName(text)} is no integer`);
}

/** Operations on data, by the word in the path. */
export const dataOperations: ReadonlyMap<string, DataRoute> = new Map([
  ['encrypt', encrypt],
  ['decrypt', decrypt],
  ['rewrap', rewrap],
  ['datakey', datakey],
  ['hmac', hmac],
  ['cmac', cmac],
  ['sign', sign],
  ['verify', verify],
  ['hash', hash],
  ['random', randomBytes],
]);

export const transitDataRoutes: readonly Route[] = [...dataOperations].flatMap(([word, { operation: POST, params, required }]) =>
  params
    .concat('')
    .map((_, count) => [word, ...params.slice(0, count).map((param) => `:${param}`)].join('/'))
    .slice(required)
    .map((path) => ({
      path,
      accepts: ({ name }: Readonly<Record<string, string>>) => name === undefined || isKeyName(name),
      operations: { POST },
    })),
);
