import type { Principal } from '@transitd/access';
import { isKeyName, type KeyAnswer, type TransitEngine } from '@transitd/transit-engine';
import { dataReply, writtenReply } from '../http/envelope.ts';
import { type FieldSchema, type Fields, fields } from '../http/fields.ts';
import type { Reply } from '../http/reply.ts';
import { keyJson } from './key-json.ts';
import type { Call, GuardedOperation, Route } from './operation.ts';
import { engineOf } from './transit-operation.ts';

/** An operation on one mount's keys: fields first, so that a mistake in them is told whatever the state of the key. */
export function operation<S extends FieldSchema>(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  schema: S,
  run: (
    engine: TransitEngine,
    asked: Fields<S>['values'],
    call: Call,
    principal: Principal,
  ) => Promise<{ readonly data?: string; readonly warnings?: readonly string[] }>,
): GuardedOperation {
  return {
    name,
    access: 'token',
    capability,
    run: async ({ service, principal }, call): Promise<Reply> => {
      const { mount: _, ...params } = call.params;
      const { values, warnings } = fields(schema, call.body, params);
      const { data, warnings: more = [] } = await run(engineOf(service, call), values, call, principal);
      const all = [...warnings, ...more];
      return data === undefined ? writtenReply(all) : dataReply(data, all);
    },
  };
}

const keyAnswer = ({ key, warnings }: KeyAnswer): { data: string; warnings: readonly string[] } => ({
  data: keyJson(key),
  warnings,
});

const create = operation(
  'keys-create',
  'update',
  {
    name: 'string',
    type: 'string',
    derived: 'bool',
    convergent_encryption: 'bool',
    exportable: 'bool',
    allow_plaintext_backup: 'bool',
    key_size: 'int',
    auto_rotate_period: 'duration',
    parameter_set: 'string',
    hybrid_key_type_pqc: 'string',
    hybrid_key_type_ec: 'string',
    managed_key_name: 'string',
    managed_key_id: 'string',
  },
  async (engine, asked, { params, body }) =>
    keyAnswer(
      await engine.createKey(params['name'] ?? '', {
        type: body['type'] === null ? '' : asked.type, // null is an unknown type here, not the default one
        derived: asked.derived,
        convergentEncryption: asked.convergent_encryption,
        exportable: asked.exportable,
        allowPlaintextBackup: asked.allow_plaintext_backup,
        keySize: asked.key_size,
        autoRotatePeriodS: asked.auto_rotate_period,
        parameterSet: asked.parameter_set,
        hybridKeyTypePqc: asked.hybrid_key_type_pqc,
        hybridKeyTypeEc: asked.hybrid_key_type_ec,
        managedKeyName: asked.managed_key_name,
        managedKeyId: asked.managed_key_id,
      }),
    ),
);

const read = operation('keys-read', 'read', { name: 'string', context: 'string' }, async (engine, { context }, { params }) => ({
  data: keyJson(await engine.readKey(params['name'] ?? '', { context })),
}));

const list = operation('keys-list', 'list', { after: 'string', limit: 'int' }, async (engine, { after, limit }) => ({
  data: JSON.stringify({ keys: await engine.listKeys({ after, limit }) }),
}));

const remove = operation('keys-delete', 'delete', { name: 'string' }, async (engine, _asked, { params }) => {
  await engine.deleteKey(params['name'] ?? '');
  return {};
});

const configure = operation(
  'keys-config',
  'update',
  {
    name: 'string',
    min_decryption_version: 'int',
    min_encryption_version: 'int',
    deletion_allowed: 'bool',
    exportable: 'bool',
    allow_plaintext_backup: 'bool',
    auto_rotate_period: 'duration',
  },
  async (engine, asked, { params }) =>
    keyAnswer(
      await engine.configureKey(params['name'] ?? '', {
        minDecryptionVersion: asked.min_decryption_version,
        minEncryptionVersion: asked.min_encryption_version,
        deletionAllowed: asked.deletion_allowed,
        exportable: asked.exportable,
        allowPlaintextBackup: asked.allow_plaintext_backup,
        autoRotatePeriodS: asked.auto_rotate_period,
      }),
    ),
);

const rotate = operation(
  'keys-rotate',
  'update',
  { name: 'string', managed_key_name: 'string', managed_key_id: 'string' },
  async (engine, { managed_key_name: managedKeyName, managed_key_id: managedKeyId }, { params }) =>
    keyAnswer(await engine.rotateKey(params['name'] ?? '', { managedKeyName, managedKeyId })),
);

const trim = operation(
  'keys-trim',
  'update',
  { name: 'string', min_available_version: 'int' },
  async (engine, asked, { params }) =>
    keyAnswer(await engine.trimKey(params['name'] ?? '', { minAvailableVersion: asked.min_available_version })),
);

const keysConfigJson = ({ disableUpsert }: { readonly disableUpsert: boolean }): string => `{"disable_upsert":${disableUpsert}}`;

const readConfig = operation('config-keys-read', 'read', {}, async (engine) => ({
  data: keysConfigJson(await engine.readKeysConfig()),
}));

const writeConfig = operation(
  'config-keys-write',
  'update',
  { disable_upsert: 'bool' },
  async (engine, { disable_upsert = false }) => ({
    data: keysConfigJson(await engine.writeKeysConfig({ disableUpsert: disable_upsert })),
  }),
);

const readCache = operation('cache-config-read', 'read', {}, async (engine) => ({
  data: JSON.stringify(await engine.readCacheConfig()),
}));

const writeCache = operation('cache-config-write', 'update', { size: 'int' }, async (engine, { size = 0 }) => ({
  data: JSON.stringify(await engine.writeCacheConfig({ size })),
}));

export const namesKey = ({ name }: Readonly<Record<string, string>>): boolean => name !== undefined && isKeyName(name);

/** Keys and their settings, below a mount. */
export const transitKeyRoutes: readonly Route[] = [
  { path: 'keys', operations: { LIST: list } },
  { path: 'keys/:name', accepts: namesKey, operations: { POST: { ...create, adds: true }, GET: read, DELETE: remove } },
  { path: 'keys/:name/config', accepts: namesKey, operations: { POST: configure } },
  { path: 'keys/:name/rotate', accepts: namesKey, operations: { POST: rotate } },
  { path: 'keys/:name/trim', accepts: namesKey, operations: { POST: trim } },
  { path: 'config/keys', operations: { GET: readConfig, POST: writeConfig } },
  { path: 'cache-config', operations: { GET: readCache, POST: writeCache } },
];
