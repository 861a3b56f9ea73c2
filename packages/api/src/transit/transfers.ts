import { allows, type Principal, pathDenial, refusedByPolicy } from '@transitd/access';
import {
  base64,
  bool,
  dataReply,
  duration,
  int,
  map,
  object,
  pathText,
  permissionDenied,
  type Rendered,
  string,
  text,
  writtenReply,
} from '@transitd/http';
import { exportFormats, isKeyName, keyTypeNames, UseTally } from '@transitd/transit-engine';
import { data, written } from '../operation/answers.ts';
import { propertiesIn } from '../operation/kept-fields.ts';
import type { GuardedOperation, Params, Route } from '../operation/operation.ts';
import { keyOperation, namesKey } from './keys.ts';
import { keyName, renderedItems } from './transit-operation.ts';

/** Fields of wrapped key material, for a new key and for a new version. */
const hash_function = text('Hash function of RSA-OAEP', {
  oneOf: ['SHA1', 'SHA224', 'SHA256', 'SHA384', 'SHA512'],
  default: 'SHA256',
});
const material = {
  ciphertext: base64(
    'AES key wrapped with the wrapping key, followed by the key material wrapped with the AES key; set either `ciphertext` or `public_key`',
  ),
  hash_function,
  public_key: text('Public key in PEM; the imported key can only verify and encrypt'),
} as const;

const importableTypes = keyTypeNames.filter((name) => !['managed_key', 'ml-dsa', 'hybrid'].includes(name));

const imported = {
  ...material,
  type: text('Type of the key', { required: true, oneOf: importableTypes }),
  allow_rotation: bool('Allow rotation of the imported key', { default: false }),
  derived: bool('Derive a separate key for each `context`', { default: false }),
  context: base64('Accepted, but has no effect'),
  convergent_encryption: bool('Enable convergent encryption; requires `derived`', { default: false }),
  exportable: bool('Allow export of the key material; cannot be revoked', { default: false }),
  allow_plaintext_backup: bool('Allow plaintext backups; cannot be revoked', { default: false }),
  auto_rotate_period: duration('Interval of automatic rotation: at least one hour, or 0 for never', { default: 0 }),
} as const;

const importKey = keyOperation(
  'keys-import',
  'create or update',
  {
    about: 'Import a key',
    takes: { name: keyName, ...imported },
    answers: written,
  },
  async ({ transfers }, { values, path }, { principal }) => {
    const mayUpdate = allows(principal, 'update', path);
    return writtenReply(await transfers.importKey(values.name, { ...propertiesIn(imported, values), mayUpdate }));
  },
);

const importedVersion = {
  ...material,
  version: int('Existing version whose private key is imported; if omitted, a new version is created', {
    min: 0,
    dropsEmpty: true,
  }),
} as const;

const importVersion = keyOperation(
  'keys-import-version',
  'update',
  {
    about: 'Import a new version of an imported key, or the private key of an existing version',
    takes: { name: keyName, ...importedVersion },
    answers: written,
  },
  async ({ transfers }, { values }) =>
    writtenReply(await transfers.importVersion(values.name, propertiesIn(importedVersion, values))),
);

const wrappingKey = keyOperation(
  'wrapping-key',
  'read',
  { about: 'Read the RSA public key that wraps imported keys', answers: data(object({ public_key: string })) },
  async ({ transfers }) => dataReply({ public_key: await transfers.wrappingKey() }),
);

const exportTypes = ['encryption-key', 'signing-key', 'hmac-key', 'cmac-key', 'public-key', 'certificate-chain'];
const versionAsked = text('Key version: `latest`, `3` or `v3`; all versions if omitted', {
  shape: { pattern: '^(latest|v?[0-9]{1,9})$' },
});
const exported = data(object({ name: string, type: string, keys: map(string) }));

const exportKey = keyOperation(
  'export',
  'read',
  {
    about: 'Export key material',
    takes: {
      key_type: pathText('Part of the key to export', { oneOf: exportTypes }),
      name: keyName,
      version: versionAsked,
      format: text('Format; by default, that of the key type', { oneOf: exportFormats }),
    },
    answers: exported,
  },
  async ({ transfers }, { values: { key_type: exportType, name, version, format }, params: { mount } }, { principal }) => {
    const exported = await transfers.exportKey(name, { exportType, version, format });
    try {
      const path = `${mount}/export/${exportType}/${name}`;
      const data = await exportedJson(principal, path, exported, ({ form, material: bytes }) =>
        form === 'base64' ? toBase64(bytes) : Buffer.from(bytes).toString(),
      );
      return dataReply(data, exported.warnings);
    } finally {
      for (const each of exported.versions) each.material.fill(0);
    }
  },
);

/** Returns the other spellings of a version: `3` and `v3` are the same version. `latest` is resolved later, when the key is read. */
const otherVersion = (version: string): readonly string[] => {
  const [, number] = /^v?([0-9]{1,9})$/.exec(version) ?? [];
  return number === undefined ? [] : [String(Number(number)), `v${Number(number)}`];
};

/**
 * Returns exported versions as JSON; each of them is checked against the policies.
 * @param path - of the export without a version
 * @param textOf - returns the exported text of a version, in ASCII
 * @throws RequestError `permission_denied` if the path of any version is denied, in any spelling (decision 87)
 */
export function exportedJson<V extends { readonly version: number }>(
  principal: Principal,
  path: string,
  { name, type, latestVersion, versions }: ExportedVersions<V>,
  textOf: (version: V) => string,
): Promise<Rendered> {
  const memberOf = (each: V): string => {
    const { version } = each;
    const spelled = version === latestVersion ? [version, `v${version}`, 'latest'] : [version, `v${version}`];
    const [denied] = spelled.flatMap((one) => pathDenial(principal, `${path}/${one}`) ?? []);
    if (denied !== undefined) throw permissionDenied(refusedByPolicy(denied));
    return `"${version}":${JSON.stringify(textOf(each))}`;
  };
  return renderedItems(`{"name":${JSON.stringify(name)},"type":${JSON.stringify(type)},"keys":{`, versions, memberOf, '}}');
}

interface ExportedVersions<V> {
  readonly name: string;
  readonly type: string;
  readonly latestVersion: number;
  /** Ascending. */
  readonly versions: readonly V[];
}

const byokExport = keyOperation(
  'byok-export',
  'read',
  {
    about: 'Export a key wrapped with another key, in the format of imports',
    takes: { destination: keyName, source: keyName, version: versionAsked, hash: hash_function },
    answers: exported,
  },
  async (
    { transfers, mountId },
    { values: { destination, source, version, hash }, params: { mount } },
    { principal, services },
  ) => {
    const tally = new UseTally();
    const wrapped = await transfers.wrapForTransfer(source, { destination, version, hashFunction: hash }, tally);
    const data = await exportedJson(principal, `${mount}/byok-export/${destination}/${source}`, wrapped, (each) => each.wrapped);
    return { ...dataReply(data, wrapped.warnings), onSent: () => services.uses.count(mountId, destination, tally) };
  },
);

const namesBoth = ({ destination, source }: Params): boolean =>
  destination !== undefined && source !== undefined && isKeyName(destination) && isKeyName(source);

const backup = keyOperation(
  'backup',
  'read',
  {
    about: 'Back up a key in plaintext, with all versions and settings',
    takes: { name: keyName },
    answers: data(object({ backup: string })),
  },
  async ({ transfers }, { values }) => dataReply({ backup: toBase64(await transfers.backupKey(values.name)) }),
);

const backupFields = {
  backup: text('Backup, as returned by `backup`', { required: true, long: true }),
  force: bool('Replace an existing key of the same name, even if its `deletion_allowed` is false', { default: false }),
};

const restore = (takes: typeof backupFields & { readonly name?: typeof keyName }): GuardedOperation =>
  keyOperation(
    'restore',
    'update',
    { about: 'Restore a key from a backup', takes, answers: written },
    async ({ transfers }, { values, params }, { principal }) => {
      // The name may come from the backup (decision 87).
      const mayRestore = (name: string): boolean => pathDenial(principal, `${params.mount}/restore/${name}`) === undefined;
      const request = { backup: values.backup, name: params.name, force: values.force, mayRestore };
      return writtenReply(await transfers.restoreKey(request));
    },
  );

/** Encodes the bytes as base64 and wipes them. */
function toBase64(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
  bytes.fill(0);
  return text;
}

const otherExportPaths = ({ mount, key_type, name, version = '' }: Params): readonly string[] =>
  otherVersion(version).map((each) => `${mount}/export/${key_type}/${name}/${each}`);
const otherWrappedPaths = ({ mount, destination, source, version = '' }: Params): readonly string[] =>
  otherVersion(version).map((each) => `${mount}/byok-export/${destination}/${source}/${each}`);

/** Routes of key import, export, backup and restore, below a mount. */
export const transitTransferRoutes: readonly Route[] = [
  { path: 'wrapping_key', operations: { GET: { ...wrappingKey, mayWrite: true } } },
  { path: 'keys/:name/import', accepts: namesKey, operations: { POST: importKey } },
  { path: 'keys/:name/import_version', accepts: namesKey, operations: { POST: importVersion } },
  { path: 'export/:key_type/:name', accepts: namesKey, operations: { GET: exportKey } },
  { path: 'export/:key_type/:name/:version', accepts: namesKey, operations: { GET: { ...exportKey, sameAs: otherExportPaths } } },
  { path: 'byok-export/:destination/:source', accepts: namesBoth, operations: { GET: byokExport } },
  {
    path: 'byok-export/:destination/:source/:version',
    accepts: namesBoth,
    operations: { GET: { ...byokExport, sameAs: otherWrappedPaths } },
  },
  { path: 'backup/:name', accepts: namesKey, operations: { GET: { ...backup, mayWrite: true } } },
  { path: 'restore', operations: { POST: { ...restore(backupFields), parsesText: true } } },
  {
    path: 'restore/:name',
    accepts: namesKey,
    operations: { POST: { ...restore({ ...backupFields, name: keyName }), parsesText: true } },
  },
];
