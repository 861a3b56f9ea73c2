import { allows, refusedByPolicy } from '@transitd/access';
import {
  base64,
  bool,
  boolean,
  dataReply,
  duration,
  type Field,
  int,
  integer,
  object,
  pathText,
  permissionDenied,
  Rendered,
  type Reply,
  text,
} from '@transitd/http';
import {
  cmacBytesMin,
  defaultKeyType,
  deletionAfterSMax,
  deletionAfterSMin,
  isKeyName,
  type KeyAnswer,
  keptVersionsMax,
  keyTypeNames,
  type LongList,
  reasonCharsMax,
} from '@transitd/transit-engine';
import { data, names, written } from '../operation/answers.ts';
import { propertiesIn } from '../operation/kept-fields.ts';
import { type Context, type GatewayContext, inGateway, operationsOn, type Params, type Route } from '../operation/operation.ts';
import { pageFields } from '../operation/pages.ts';
import { denialLater } from '../operation/rights.ts';
import { keyTypeSpellings, parameterSetSpellings } from '../operation/spellings.ts';
import { setIn, wholeMacBytes, withoutEffect } from './data-fields.ts';
import { keyJson, keySchema } from './key-json.ts';
import { engineOf, keyName } from './transit-operation.ts';
import { unlessUsed, unlessUsedWithin } from './unless-used.ts';

/**
 * Makes an operation on the keys of one mount. Fields are converted first, so an invalid field is reported whatever the state of the key.
 */
export const keyOperation = operationsOn(({ services }: GatewayContext, call) => engineOf(services, call));

/** Makes an operation that takes versions of a key away, unless they were used within the time that the caller may set. */
const takingOperation = operationsOn(({ services, node }: Context, call) => {
  const engine = engineOf(services, call);
  const { unless_used_within: withinS } = call.values;
  return { engine, check: unlessUsed(node, engine, withinS) };
});

const keyReply = ({ key, warnings }: KeyAnswer): Reply => dataReply(keyJson(key), warnings);

/** A field of a key. */
interface KeyField extends Field {
  /** Only keys of these types use the field; on others it causes a warning. Absent if each key uses or refuses it. */
  readonly ofTypes?: readonly string[];
}

/** The managed key of a new version. */
const managedKey = {
  managed_key_name: {
    ...text('Name of the managed key, for type `managed_key`; set either `managed_key_name` or `managed_key_id`'),
    ofTypes: ['managed_key'],
  },
  managed_key_id: { ...text('ID of the managed key, for type `managed_key`'), ofTypes: ['managed_key'] },
} as const;

/** Fields of a new key. */
const newKey = {
  type: text('Type of the key', { oneOf: keyTypeNames, default: defaultKeyType, spellings: keyTypeSpellings }),
  derived: bool('Derive a separate key for each `context`', { default: false }),
  convergent_encryption: bool('Encrypt equal plaintexts with equal contexts to equal ciphertexts; requires `derived`', {
    default: false,
  }),
  exportable: bool('Allow export of the key material; cannot be revoked', { default: false }),
  allow_plaintext_backup: bool('Allow plaintext backups; cannot be revoked', { default: false }),
  key_size: int('Size of an `hmac` key in bytes; 0 means 32', { default: 0, min: 0, max: 512 }),
  auto_rotate_period: duration('Interval of automatic rotation: at least one hour, or 0 for never', { default: 0 }),
  parameter_set: {
    ...text('Parameter set, for types `ml-dsa` and `hybrid`', { oneOf: ['44', '65', '87'], spellings: parameterSetSpellings }),
    ofTypes: ['ml-dsa', 'hybrid'],
  },
  hybrid_key_type_pqc: { ...text('Post-quantum key type, for type `hybrid`', { oneOf: ['ml-dsa'] }), ofTypes: ['hybrid'] },
  hybrid_key_type_ec: {
    ...text('Elliptic curve key type, for type `hybrid`', { oneOf: ['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'ed25519'] }),
    ofTypes: ['hybrid'],
  },
  ...managedKey,
} as const;

/** Returns the reply with a warning about fields that the key's type does not use. */
function replyFor(
  declared: Readonly<Record<string, KeyField>>,
  values: Readonly<Record<string, unknown>>,
  { key, warnings }: KeyAnswer,
): Reply {
  const given = setIn(declared, values, Object.keys(declared));
  const unused = given.filter((name) => declared[name]?.ofTypes?.includes(key.type) === false);
  return keyReply({ key, warnings: [...warnings, ...withoutEffect(unused, `on a key of type ${key.type}`)] });
}

const create = keyOperation(
  'keys-create',
  'create or update',
  {
    about: 'Create a key; has no effect if the key exists',
    takes: { name: keyName, ...newKey },
    answers: data(keySchema),
  },
  async (engine, { values, path }, { principal }) => {
    const mayUpdate = allows(principal, 'update', path);
    return replyFor(newKey, values, await engine.createKey(values.name, { ...propertiesIn(newKey, values), mayUpdate }));
  },
);

/** Returns `make` with a cache. A cached result is used as long as the engine returns the same object. */
function cached<T extends object>(make: (value: T) => Rendered): (value: T) => Rendered {
  const made = new WeakMap<T, Rendered>();
  return (value) => {
    const known = made.get(value);
    if (known !== undefined) return known;
    const result = make(value);
    made.set(value, result);
    return result;
  };
}

const keyText = cached(keyJson);
const namesJson = cached((names: readonly string[]) => {
  const text = JSON.stringify({ keys: names });
  return new Rendered(text.length < longChars ? text : [Buffer.from(text)]);
});

/** From this length on, the copies of a text on its way to the socket cost more than writing a response in pieces. */
const longChars = 16 * 1024;

/** Returns the JSON of a list in parts, one page in each part. */
function longList({ first, rest }: LongList): Rendered {
  const parts = async function* () {
    for await (const names of rest) yield `,${JSON.stringify(names).slice(1, -1)}`;
    yield ']}';
  };
  return new Rendered(`{"keys":[${JSON.stringify(first).slice(1, -1)}`, parts());
}

const read = keyOperation(
  'keys-read',
  'read',
  {
    about: 'Read the properties of a key, without the key material',
    takes: { name: keyName, context: base64('Context of the derived public keys to return') },
    answers: data(keySchema),
  },
  async (engine, { values }) => {
    const key = await engine.readKey(values.name, { context: values.context });
    return dataReply(keyText(key), key.derived ? [] : withoutEffect(setIn({}, values, ['context']), 'on this key'));
  },
);

const list = keyOperation(
  'keys-list',
  'list',
  {
    about: 'List key names',
    takes: pageFields,
    answers: names,
  },
  async (engine, { values: { after, limit } }) => {
    const found = await engine.listKeys({ after, limit });
    return dataReply('first' in found ? longList(found) : namesJson(found));
  },
);

const remove = takingOperation(
  'keys-delete',
  'delete',
  {
    about: 'Delete a key whose `deletion_allowed` is true',
    takes: { name: keyName, unless_used_within: unlessUsedWithin },
    answers: written,
  },
  ({ engine, check }, { values }) => engine.deleteKey(values.name, check),
);

const softDelete = keyOperation(
  'keys-soft-delete',
  'delete',
  {
    about: 'Refuse every use of a key until it is restored; needs no `deletion_allowed`',
    takes: { name: keyName },
    answers: data(keySchema),
  },
  async (engine, { values }) => keyReply(await engine.softDeleteKey(values.name)),
);

const scheduleDeletion = takingOperation(
  'keys-schedule-deletion',
  'update',
  {
    about: 'Soft-delete a key whose `deletion_allowed` is true, and delete it permanently later',
    takes: {
      name: keyName,
      after: duration('Time until the deletion: 7 to 90 days', {
        required: true,
        min: deletionAfterSMin,
        max: deletionAfterSMax,
      }),
      unless_used_within: unlessUsedWithin,
    },
    answers: data(keySchema),
    deletesLater: ({ mount, name }) => `${mount}/keys/${name}`,
  },
  async ({ engine, check }, { values: { name, after = 0 } }) => keyReply(await engine.scheduleDeletion(name, after, check)),
);

const restoreDeleted = keyOperation(
  'keys-soft-delete-restore',
  'update',
  {
    about: 'Let a soft-deleted key be used again, and cancel its scheduled deletion',
    takes: { name: keyName },
    answers: data(keySchema),
  },
  async (engine, { values }) => keyReply(await engine.restoreDeletedKey(values.name)),
);

/** A version has one spelling in a path, so that a policy need not name others (decision 87). */
const versionPattern = '^[1-9][0-9]{0,9}$';
const keyVersion = pathText('Key version', { shape: { pattern: versionPattern } });

const disableVersion = keyOperation(
  'keys-version-disable',
  'update',
  {
    about: 'Refuse every use of a key version; the latest version cannot be disabled',
    takes: {
      name: keyName,
      version: keyVersion,
      reason: text(`Shown to readers of the key; at most ${reasonCharsMax} characters`, { shape: { maxLength: reasonCharsMax } }),
    },
    answers: data(keySchema),
  },
  async (engine, { values: { name, version, reason } }) =>
    keyReply(await engine.disableVersion(name, { version: Number(version), reason })),
);

const enableVersion = keyOperation(
  'keys-version-enable',
  'update',
  {
    about: 'Let a disabled key version be used again',
    takes: { name: keyName, version: keyVersion },
    answers: data(keySchema),
  },
  async (engine, { values: { name, version } }) => keyReply(await engine.enableVersion(name, Number(version))),
);

/** Settings of a key. */
const keySettings = {
  min_decryption_version: int('Oldest version that may decrypt and verify', { min: 0 }),
  min_encryption_version: int('Oldest version that may encrypt and sign; 0 for the latest version only', { min: 0 }),
  deletion_allowed: bool('Allow deletion of the key'),
  exportable: bool('Allow export of the key material; cannot be revoked'),
  allow_plaintext_backup: bool('Allow plaintext backups; cannot be revoked'),
  auto_rotate_period: duration('Interval of automatic rotation: at least one hour, or 0 for never'),
  keep_encryption_versions: int(
    'Versions that may encrypt and sign, counted from the newest usable one: each new version raises `min_encryption_version`; 0 for no limit',
    { min: 0, max: keptVersionsMax },
  ),
  keep_decryption_versions: int(
    'Versions that may decrypt and verify, counted from the newest usable one: each new version raises `min_decryption_version`; 0 for no limit',
    { min: 0, max: keptVersionsMax },
  ),
  trim_after: duration(
    'Delete versions permanently that have been below `min_decryption_version` for this time: at least one hour, or 0 for never; a change by which they are deleted earlier needs the right to trim the key',
  ),
  min_mac_length: int('Bytes of the shortest CMAC that verifies without `mac_length`, for keys that make CMACs', {
    min: cmacBytesMin,
    max: wholeMacBytes,
  }),
  max_operations: int('Encryptions and signatures of one version, after which it makes no more; 0 for the default', { min: 0 }),
} as const;

const configure = takingOperation(
  'keys-config',
  'update',
  {
    about: 'Update settings of a key; omitted fields keep their values',
    takes: { name: keyName, ...keySettings, unless_used_within: unlessUsedWithin },
    answers: data(keySchema),
  },
  async ({ engine, check }, call, { principal }) => {
    const { values, params } = call;
    // Otherwise policies that let somebody change keys but trim none would let old versions be deleted.
    const requireTrim = (): void => {
      const denied = denialLater(
        principal,
        { capability: 'update', path: `${params.mount}/keys/${values.name}/trim` },
        trim,
        call,
      );
      if (denied !== undefined) throw permissionDenied(refusedByPolicy(denied));
    };
    return keyReply(await engine.configureKey(values.name, propertiesIn(keySettings, values), check, requireTrim));
  },
);

const rotate = keyOperation(
  'keys-rotate',
  'update',
  {
    about: 'Rotate a key: create a new version',
    takes: { name: keyName, ...managedKey },
    answers: data(keySchema),
  },
  async (engine, { values }) =>
    replyFor(managedKey, values, await engine.rotateKey(values.name, propertiesIn(managedKey, values))),
);

const trim = takingOperation(
  'keys-trim',
  'update',
  {
    about: 'Delete old versions permanently',
    takes: {
      name: keyName,
      min_available_version: int('Oldest key version to keep', { required: true, min: 1 }),
      unless_used_within: unlessUsedWithin,
    },
    answers: data(keySchema),
  },
  async ({ engine, check }, { values }) =>
    keyReply(await engine.trimKey(values.name, { minAvailableVersion: values.min_available_version }, check)),
);

const keysConfigReply = ({ disableUpsert }: { readonly disableUpsert: boolean }): Reply =>
  dataReply({ disable_upsert: disableUpsert });

const keysConfigAnswer = data(object({ disable_upsert: boolean }));

const readConfig = keyOperation(
  'config-keys-read',
  'read',
  { about: 'Read the settings for all keys of the mount', answers: keysConfigAnswer },
  async (engine) => keysConfigReply(await engine.readKeysConfig()),
);

const writeConfig = keyOperation(
  'config-keys-write',
  'update',
  {
    about: 'Update the settings for all keys of the mount',
    takes: { disable_upsert: bool('Do not create missing keys on encryption', { default: false }) },
    answers: keysConfigAnswer,
  },
  async (engine, { values: { disable_upsert: disableUpsert = false } }) =>
    keysConfigReply(await engine.writeKeysConfig({ disableUpsert })),
);

const cacheAnswer = data(object({ size: integer }));

const readCache = keyOperation(
  'cache-config-read',
  'read',
  { about: 'Read the size of the key cache', answers: cacheAnswer },
  async (engine) => dataReply(await engine.readCacheConfig()),
);

const writeCache = keyOperation(
  'cache-config-write',
  'update',
  {
    about: 'Set the size of the key cache; takes effect after a plugin reload',
    takes: { size: int('Maximum number of keys: at least 10, or 0 for no limit', { default: 0, min: 0 }) },
    answers: cacheAnswer,
  },
  async (engine, { values: { size = 0 } }) => dataReply(await engine.writeCacheConfig({ size })),
);

export const namesKey = ({ name }: Params): boolean => name !== undefined && isKeyName(name);

const namesVersion = (params: Params): boolean => namesKey(params) && new RegExp(versionPattern).test(params.version ?? '');

/** Routes of keys and their settings, below a mount. */
export const transitKeyRoutes: readonly Route[] = [
  { path: 'keys', operations: { LIST: list } },
  {
    path: 'keys/:name',
    accepts: namesKey,
    operations: { POST: create, GET: inGateway(read), DELETE: remove },
  },
  { path: 'keys/:name/soft-delete', accepts: namesKey, operations: { DELETE: softDelete } },
  { path: 'keys/:name/schedule-deletion', accepts: namesKey, operations: { POST: scheduleDeletion } },
  { path: 'keys/:name/soft-delete-restore', accepts: namesKey, operations: { POST: restoreDeleted } },
  { path: 'keys/:name/versions/:version/disable', accepts: namesVersion, operations: { POST: disableVersion } },
  { path: 'keys/:name/versions/:version/enable', accepts: namesVersion, operations: { POST: enableVersion } },
  { path: 'keys/:name/config', accepts: namesKey, operations: { POST: configure } },
  { path: 'keys/:name/rotate', accepts: namesKey, operations: { POST: rotate } },
  { path: 'keys/:name/trim', accepts: namesKey, operations: { POST: trim } },
  { path: 'config/keys', operations: { GET: readConfig, POST: writeConfig } },
  { path: 'cache-config', operations: { GET: readCache, POST: writeCache } },
];
