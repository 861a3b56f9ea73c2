import { allows } from '@transitd/access';
import { type BatchReply, type ItemResult, isKeyName, type TransitEngine } from '@transitd/transit-engine';
import { dataReply, envelope } from '../http/envelope.ts';
import { type FieldSchema, type Fields, fields } from '../http/fields.ts';
import type { Body } from '../http/json.ts';
import type { Reply } from '../http/reply.ts';
import type { Service } from '../node/node.ts';
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

function batchReply<R extends object>(
  { render, failedItem = '' }: { render(result: R): string; readonly failedItem?: string },
  { results, outcome }: BatchReply<R>,
  asked: number | undefined,
  warnings: readonly string[],
): Reply {
  const items = results.map((result) => {
    const members = isFailure(result) ? `${failedItem}"error":${JSON.stringify(result.error)}` : render(result);
    return `{${members},"reference":${JSON.stringify(result.reference)}}`;
  });
  const override = partialFailureStatus(asked);
  const all = override === undefined ? [...warnings, badOverride] : warnings;
  const status = outcome === 'all_ok' ? 200 : outcome === 'all_failed' ? 400 : (override ?? 400);
  return { status, body: envelope(`{"batch_results":[${items.join()}]}`, all) };
}

/** What distinguishes one operation on data from the others. */
interface DataOperation<S extends FieldSchema, R extends object> {
  readonly name: string;
  readonly schema: S;
  /** Absent where the key's existence decides which right is needed. */
  readonly capability?: 'update';
  ask(engine: TransitEngine, asked: Fields<S>['values'], caller: Caller): Promise<R | BatchReply<R>>;
  /** Members of one result, as JSON text. */
  render(result: R): string;
  /** Members that stand beside the error of a failed item. */
  readonly failedItem?: string;
}

interface Caller {
  readonly keyName: string;
  readonly body: Body;
  readonly mayCreate: boolean;
  readonly mayUpdate: boolean;
}

const common = { name: 'string', partial_failure_response_code: 'int' } as const satisfies FieldSchema;

function operation<S extends FieldSchema, R extends object>(data: DataOperation<S, R>): GuardedOperation {
  const { name, capability } = data;
  const schema: FieldSchema = { ...data.schema, ...common };
  return {
    name,
    access: 'token',
    ...(capability && { capability }),
    run: async ({ service, principal }, call) => {
      const { body, path, params } = call;
      const keyName = params['name'] ?? '';
      const { values, warnings } = fields(schema, body, { name: keyName });
      const mayCreate = allows(principal, 'create', path);
      const mayUpdate = allows(principal, 'update', path);
      const reply = await data.ask(engineOf(service, call), values as Fields<S>['values'], {
        keyName,
        body,
        mayCreate,
        mayUpdate,
      });
      if ('outcome' in reply)
        return batchReply(data, reply, (values as Fields<typeof common>['values']).partial_failure_response_code, warnings);
      return dataReply(`{${data.render(reply)}}`, warnings);
    },
  };
}

const encrypt = operation({
  name: 'encrypt',
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
  ask: (engine, asked, { keyName, body, mayCreate, mayUpdate }) =>
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
      mayCreate,
      mayUpdate,
    }),
  render: ciphertextJson,
});

const decrypt = operation({
  name: 'decrypt',
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

/** Operations on data with one existing key, by the word in the path. */
export const dataOperations: ReadonlyMap<string, GuardedOperation> = new Map([
  ['encrypt', encrypt],
  ['decrypt', decrypt],
  ['rewrap', rewrap],
]);

export const transitDataRoutes: readonly Route[] = [...dataOperations].map(([word, POST]) => ({
  path: `${word}/:name`,
  accepts: ({ name }) => name !== undefined && isKeyName(name),
  operations: { POST },
}));
