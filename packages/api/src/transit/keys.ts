import type { Principal } from '@transitd/access';
import {
  base64,
  bool,
  boolean,
  dataReply,
  duration,
  type FieldSchema,
  int,
  integer,
  object,
  text,
  writtenReply,
} from '@transitd/http';
import { defaultKeyType, isKeyName, type KeyAnswer, keyTypeNames, type TransitEngine } from '@transitd/transit-engine';
import { data, names, written } from '../operation/answers.ts';
import {
  type Asked,
  type Described,
  type GuardedOperation,
  guarded,
  type Params,
  pathParam,
  type Route,
} from '../operation/operation.ts';
import { keyJson, keySchema } from './key-json.ts';
import { engineOf, keyName } from './transit-operation.ts';

/** An operation on one mount's keys: fields first, so that a mistake in them is told whatever the state of the key. */
export function operation<S extends FieldSchema = Record<never, never>>(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  described: Described<S>,
  run: (
    engine: TransitEngine,
    values: Asked<S>['values'],
    asked: Asked<S>,
    principal: Principal,
  ) => Promise<{ readonly data?: string; readonly warnings?: readonly string[] }>,
): GuardedOperation {
  return guarded({
    name,
    capability,
    ...described,
    run: async ({ services, principal }, asked) => {
      const { data, warnings = [] } = await run(engineOf(services, asked), asked.values, asked, principal);
      const all = [...asked.warnings, ...warnings];
      return data === undefined ? writtenReply(all) : dataReply(data, all);
    },
  });
}

const keyAnswer = ({ key, warnings }: KeyAnswer): { data: string; warnings: readonly string[] } => ({
  data: keyJson(key),
  warnings,
});

const create = operation(
  'keys-create',
  'update',
  {
    about: 'makes a key; an existing one stays as it is',
    takes: {
      name: keyName,
      type: text('what kind of key', { oneOf: keyTypeNames, default: defaultKeyType }),
      derived: bool('a key of its own for each context'),
      convergent_encryption: bool('equal plaintexts in equal contexts give equal ciphertexts; needs `derived`'),
      exportable: bool('its material may be shown; stays so'),
      allow_plaintext_backup: bool('it may be backed up in clear; stays so'),
      key_size: int('bytes of an `hmac` key; 0 is 32', { default: 0, min: 0, max: 512 }),
      auto_rotate_period: duration('how often it gets a new version by itself: an hour or more, 0 for never'),
      parameter_set: text('of `ml-dsa` and `hybrid`', { oneOf: ['44', '65', '87'] }),
      hybrid_key_type_pqc: text('of `hybrid`', { oneOf: ['ml-dsa'] }),
      hybrid_key_type_ec: text('of `hybrid`', { oneOf: ['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'ed25519'] }),
      managed_key_name: text('of `managed_key`: this or the next'),
      managed_key_id: text('of `managed_key`'),
    },
    answers: data(keySchema),
  },
  async (engine, asked, call) =>
    keyAnswer(
      await engine.createKey(pathParam(call, 'name'), {
        type: asked.type,
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

/** The text that is made of a value, made once for as long as the engine gives the same one. */
function once<T extends object>(make: (value: T) => string): (value: T) => string {
  const made = new WeakMap<T, string>();
  return (value) => {
    const known = made.get(value);
    if (known !== undefined) return known;
    const text = make(value);
    made.set(value, text);
    return text;
  };
}

const keyText = once(keyJson);
const namesText = once((names: readonly string[]) => JSON.stringify({ keys: names }));

const read = operation(
  'keys-read',
  'read',
  {
    about: 'a key, without its material',
    takes: { name: keyName, context: base64('whose derived public keys are shown') },
    answers: data(keySchema),
  },
  async (engine, { context }, call) => ({
    data: keyText(await engine.readKey(pathParam(call, 'name'), { context })),
  }),
);

const list = operation(
  'keys-list',
  'list',
  {
    about: 'names of keys',
    takes: { after: text('only names behind this one'), limit: int('how many at most; all when 0', { min: 0 }) },
    answers: names,
  },
  async (engine, { after, limit }) => ({
    data: namesText(await engine.listKeys({ after, limit })),
  }),
);

const remove = operation(
  'keys-delete',
  'delete',
  { about: 'deletes a key whose `deletion_allowed` is true', takes: { name: keyName }, answers: written },
  async (engine, _values, call) => {
    await engine.deleteKey(pathParam(call, 'name'));
    return {};
  },
);

const configure = operation(
  'keys-config',
  'update',
  {
    about: 'settings of a key; those that are not named stay',
    takes: {
      name: keyName,
      min_decryption_version: int('the oldest version that decrypts and verifies', { min: 0 }),
      min_encryption_version: int('the oldest version that encrypts and signs; 0 for the latest alone', { min: 0 }),
      deletion_allowed: bool('it may be deleted'),
      exportable: bool('its material may be shown; stays so'),
      allow_plaintext_backup: bool('it may be backed up in clear; stays so'),
      auto_rotate_period: duration('an hour or more; 0 for never'),
    },
    answers: data(keySchema),
  },
  async (engine, asked, call) =>
    keyAnswer(
      await engine.configureKey(pathParam(call, 'name'), {
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
  {
    about: 'a new version',
    takes: {
      name: keyName,
      managed_key_name: text('of `managed_key`: this or the next'),
      managed_key_id: text('of `managed_key`'),
    },
    answers: data(keySchema),
  },
  async (engine, { managed_key_name: managedKeyName, managed_key_id: managedKeyId }, call) =>
    keyAnswer(await engine.rotateKey(pathParam(call, 'name'), { managedKeyName, managedKeyId })),
);

const trim = operation(
  'keys-trim',
  'update',
  {
    about: 'deletes old versions, for ever',
    takes: { name: keyName, min_available_version: int('the oldest version that stays', { required: true, min: 1 }) },
    answers: data(keySchema),
  },
  async (engine, asked, call) =>
    keyAnswer(await engine.trimKey(pathParam(call, 'name'), { minAvailableVersion: asked.min_available_version })),
);

const keysConfigJson = ({ disableUpsert }: { readonly disableUpsert: boolean }): string => `{"disable_upsert":${disableUpsert}}`;

const keysConfigAnswer = data(object({ disable_upsert: boolean }));

const readConfig = operation(
  'config-keys-read',
  'read',
  { about: 'settings of all keys', answers: keysConfigAnswer },
  async (engine) => ({
    data: keysConfigJson(await engine.readKeysConfig()),
  }),
);

const writeConfig = operation(
  'config-keys-write',
  'update',
  {
    about: 'settings of all keys',
    takes: { disable_upsert: bool('encryption makes no keys', { default: false }) },
    answers: keysConfigAnswer,
  },
  async (engine, { disable_upsert = false }) => ({
    data: keysConfigJson(await engine.writeKeysConfig({ disableUpsert: disable_upsert })),
  }),
);

const cacheAnswer = data(object({ size: integer }));

const readCache = operation(
  'cache-config-read',
  'read',
  { about: 'size of the cache of keys', answers: cacheAnswer },
  async (engine) => ({
    data: JSON.stringify(await engine.readCacheConfig()),
  }),
);

const writeCache = operation(
  'cache-config-write',
  'update',
  {
    about: 'size of the cache of keys, in force after a reload',
    takes: { size: int('keys at most: 10 or more, 0 for no such limit', { default: 0, min: 0 }) },
    answers: cacheAnswer,
  },
  async (engine, { size = 0 }) => ({
    data: JSON.stringify(await engine.writeCacheConfig({ size })),
  }),
);

export const namesKey = ({ name }: Params): boolean => name !== undefined && isKeyName(name);

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
