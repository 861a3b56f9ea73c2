import { setImmediate as nextTurn } from 'node:timers/promises';
import { allows, isDenied, type Principal } from '@transitd/access';
import {
  type BatchReply,
  defaultHash,
  hashOf,
  type ItemResult,
  isKeyName,
  itemsPerTurn,
  random,
  randomSources,
  type TransitEngine,
  TransitError,
} from '@transitd/transit-engine';
import { dataReply, envelope } from '../http/envelope.ts';
import { permissionDenied } from '../http/error-answer.ts';
import { type FieldSchema, type Fields, fields } from '../http/fields.ts';
import type { Body, JsonValue } from '../http/json.ts';
import type { Reply } from '../http/reply.ts';
import type { Service } from '../node/service.ts';
import type { Call, GuardedOperation, Route } from './operation.ts';

/** The engine of the mount that the path begins with. */
export function engineOf({ engines }: Service, { params }: Call): TransitEngine {
  const engine = engines.get(params['mount'] ?? '');
  if (engine === undefined) throw new Error('a route was taken whose mount does not exist');
  return engine;
}

/** A ciphertext is ASCII without anything that JSON escapes; so is a plaintext in base64. */
const ciphertextJson = ({ ciphertext, keyVersion }: { readonly ciphertext: string; readonly keyVersion: number }): string =>
  `"ciphertext":"${ciphertext}","key_version":${keyVersion}`;

/**
 * A status that a caller may choose for a batch of which a part failed (decision 38): one that carries a body.
 * Undefined when it is not one.
 */
function partialFailureStatus(asked: number | undefined): number | undefined {
  if (asked === undefined || asked === 0) return 400;
  return asked >= 200 && asked <= 599 && asked !== 204 && asked !== 205 && asked !== 304 ? asked : undefined;
}

const badOverride = 'invalid HTTP response code override from partial_failure_response_code, reverting to 400';

const isFailure = <R>(result: ItemResult<R>): result is Extract<ItemResult<R>, { readonly error: string }> => 'error' in result;

async function batchReply<R extends object>(
  { render, failedItem = '' }: { render(result: R): string; readonly failedItem?: string },
  { results, outcome }: BatchReply<R>,
  asked: number | undefined,
  warnings: readonly string[],
): Promise<Reply> {
  const items: string[] = [];
  for (const result of results) {
    if (items.length % itemsPerTurn === itemsPerTurn - 1) await nextTurn();
    const members = isFailure(result) ? `${failedItem}"error":${JSON.stringify(result.error)}` : render(result);
    items.push(`{${members},"reference":${JSON.stringify(result.reference)}}`);
  }
  const override = partialFailureStatus(asked);
  const all = override === undefined ? [...warnings, badOverride] : warnings;
  const status = outcome === 'all_ok' ? 200 : outcome === 'all_failed' ? 400 : (override ?? 400);
  return { status, body: envelope(`{"batch_results":[${items.join()}]}`, all) };
}

/** What distinguishes one operation on data from the others. */
interface DataOperation<S extends FieldSchema, R extends object> {
  readonly name: string;
  /** Its path behind the word: what `:mount/<word>` is followed by, the last of it optional where `required` says so. */
  readonly path: { readonly params: readonly string[]; readonly required: number };
  readonly schema: S;
  /** Absent where the key's existence decides which right is needed. */
  readonly capability?: 'update';
  /**
   * What stands behind the word in the paths that name in so many words what will really be used (decision 29), where it may come
   * from the body or be a default.
   */
  spelledOut?(asked: Fields<S>['values']): readonly string[];
  /** The path's parameters as fields, where what they are depends on what they hold. */
  pathFields?(params: Readonly<Record<string, string>>): Readonly<Record<string, string>>;
  ask(engine: TransitEngine, asked: Fields<S>['values'], caller: Caller): Promise<R | BatchReply<R>>;
  /** Members of one result, as JSON text. */
  render(result: R): string;
  /** Members that stand beside the error of a failed item. */
  readonly failedItem?: string;
  /** What the caller should know. */
  warnings?(result: R): readonly string[];
}

interface Caller {
  /** Empty where the path names no key. */
  readonly keyName: string;
  readonly body: Body;
  readonly principal: Principal;
  readonly path: string;
}

/** An operation and the shape of its path. */
export interface DataRoute {
  readonly operation: GuardedOperation;
  readonly params: readonly string[];
  readonly required: number;
}

const common = { name: 'string', partial_failure_response_code: 'int' } as const satisfies FieldSchema;

function operation<S extends FieldSchema, R extends object>(data: DataOperation<S, R>): DataRoute {
  const { name, capability } = data;
  const schema: FieldSchema = { ...common, ...data.schema };
  const run = async (
    { service, principal }: { readonly service: Service; readonly principal: Principal },
    call: Call,
  ): Promise<Reply> => {
    const { body, path, params } = call;
    const { mount = '', ...pathParams } = params;
    const { values, warnings } = fields(schema, body, data.pathFields?.(pathParams) ?? pathParams);
    for (const form of data.spelledOut?.(values as Fields<S>['values']) ?? []) {
      if (isDenied(principal, `${mount}/${name}/${form}`)) throw permissionDenied();
    }
    const caller = { keyName: params['name'] ?? '', body, principal, path };
    const reply = await data.ask(engineOf(service, call), values as Fields<S>['values'], caller);
    if ('outcome' in reply) {
      return batchReply(data, reply, (values as Fields<typeof common>['values']).partial_failure_response_code, warnings);
    }
    const more = data.warnings?.(reply) ?? [];
    return dataReply(`{${data.render(reply)}}`, more.length === 0 ? warnings : [...warnings, ...more]);
  };
  return { operation: { name, access: 'token', where: 'replica', ...(capability && { capability }), run }, ...data.path };
}

const named = { params: ['name'], required: 1 } as const;

const encrypt = operation({
  name: 'encrypt',
  path: named,
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
    engine.encrypt(keyName, {
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
    engine.decrypt(keyName, {
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
    engine.rewrap(keyName, {
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
    engine.datakey(keyName, {
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

const hmac = operation({
  name: 'hmac',
  path: { params: ['name', 'urlalgorithm'], required: 1 },
  schema: {
    name: 'string',
    urlalgorithm: 'string',
    algorithm: 'string',
    input: 'string',
    key_version: 'int',
    batch_input: 'any',
  },
  capability: 'update',
  spelledOut: ({ name, urlalgorithm, algorithm }) => [`${name}/${urlalgorithm ?? algorithm ?? defaultHash}`],
  ask: (engine, asked, { keyName }) =>
    engine.hmac(keyName, {
      algorithm: asked.urlalgorithm ?? asked.algorithm,
      input: asked.input,
      keyVersion: asked.key_version,
      batchInput: asked.batch_input,
    }),
  render: (result) => `"hmac":"${result.hmac}","key_version":${result.keyVersion}`,
});

const cmac = operation({
  name: 'cmac',
  path: { params: ['name', 'url_mac_length'], required: 1 },
  schema: { name: 'string', url_mac_length: 'int', mac_length: 'int', input: 'string', key_version: 'int', batch_input: 'any' },
  capability: 'update',
  spelledOut: ({ name, url_mac_length, mac_length, batch_input }) => {
    const lengths = url_mac_length === undefined ? lengthsIn(batch_input, mac_length ?? 0) : [url_mac_length];
    return lengths
      .flatMap((length) => (length === 0 || length === wholeMacBytes ? [0, wholeMacBytes] : [length]))
      .map((length) => `${name}/${length}`);
  },
  ask: (engine, asked, { keyName }) =>
    engine.cmac(keyName, {
      macLengthForAll: asked.url_mac_length,
      macLength: asked.mac_length,
      input: asked.input,
      keyVersion: asked.key_version,
      batchInput: asked.batch_input,
    }),
  render: (result) => `"cmac":"${result.cmac}","key_version":${result.keyVersion}`,
});

const verify = operation({
  name: 'verify',
  path: { params: ['name', 'urlalgorithm'], required: 1 },
  schema: {
    name: 'string',
    urlalgorithm: 'string',
    hash_algorithm: 'string',
    algorithm: 'string',
    input: 'string',
    signature: 'string',
    hmac: 'string',
    cmac: 'string',
    batch_input: 'any',
  },
  capability: 'update',
  spelledOut: (asked) => [`${asked.name}/${asked.urlalgorithm ?? asked.hash_algorithm ?? asked.algorithm ?? defaultHash}`],
  ask: (engine, asked, { keyName }) =>
    engine.verify(keyName, {
      hashAlgorithm: asked.urlalgorithm ?? asked.hash_algorithm ?? asked.algorithm,
      input: asked.input,
      signature: asked.signature,
      hmac: asked.hmac,
      cmac: asked.cmac,
      batchInput: asked.batch_input,
    }),
  render: ({ valid }) => `"valid":${valid}`,
  failedItem: '"valid":false,',
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

const wholeMacBytes = 16;

/** The lengths that a request for CMACs comes to: its own, and those of its items that have one. */
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

function byteCount(text: string): number {
  if (/^[+-]?\d{1,9}$/.test(text)) return Number(text);
  throw new TransitError('invalid_request', `error parsing url-set byte count: ${JSON.stringify(text)} is no integer`);
}

/** Operations on data, by the word in the path. */
export const dataOperations: ReadonlyMap<string, DataRoute> = new Map([
  ['encrypt', encrypt],
  ['decrypt', decrypt],
  ['rewrap', rewrap],
  ['datakey', datakey],
  ['hmac', hmac],
  ['cmac', cmac],
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
