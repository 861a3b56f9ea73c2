import { isDenied, type Principal } from '@transitd/access';
import { isKeyName, type KeyExport } from '@transitd/transit-engine';
import { permissionDenied } from '../http/error-answer.ts';
import type { Route } from './operation.ts';
import { namesKey, operation } from './transit-keys.ts';

/** Fields of what comes in wrapped, for a new key and for a new version alike. */
const material = { name: 'string', ciphertext: 'string', hash_function: 'string', public_key: 'string' } as const;

const importKey = operation(
  'keys-import',
  'update',
  {
    ...material,
    type: 'string',
    allow_rotation: 'bool',
    derived: 'bool',
    context: 'string',
    convergent_encryption: 'bool',
    exportable: 'bool',
    allow_plaintext_backup: 'bool',
    auto_rotate_period: 'duration',
  },
  async ({ transfers }, asked, { params }) => ({
    warnings: await transfers.importKey(params['name'] ?? '', {
      ciphertext: asked.ciphertext,
      hashFunction: asked.hash_function,
      publicKey: asked.public_key,
      type: asked.type,
      allowRotation: asked.allow_rotation,
      derived: asked.derived,
      context: asked.context,
      convergentEncryption: asked.convergent_encryption,
      exportable: asked.exportable,
      allowPlaintextBackup: asked.allow_plaintext_backup,
      autoRotatePeriodS: asked.auto_rotate_period,
    }),
  }),
);

const importVersion = operation(
  'keys-import-version',
  'update',
  { ...material, version: 'int' },
  async ({ transfers }, asked, { params }) => ({
    warnings: await transfers.importVersion(params['name'] ?? '', {
      ciphertext: asked.ciphertext,
      hashFunction: asked.hash_function,
      publicKey: asked.public_key,
      version: asked.version,
    }),
  }),
);

const wrappingKey = operation('wrapping-key', 'read', {}, async ({ transfers }) => ({
  data: JSON.stringify({ public_key: await transfers.wrappingKey() }),
}));

const exportKey = operation(
  'export',
  'read',
  { key_type: 'string', name: 'string', version: 'string' },
  async ({ transfers }, { key_type: exportType = '', version }, { params }, principal) => {
    const exported = await transfers.exportKey(params['name'] ?? '', { exportType, version });
    const { mount, key_type: kind, name } = params;
    try {
      checkVersions(principal, `${mount}/export/${kind}/${name}`, exported);
      return { data: exportJson(exported) };
    } finally {
      for (const each of exported.versions) each.material.fill(0);
    }
  },
);

/** Decision 29: "latest", "v1" and all of them come to versions, each of which has a path of its own. */
function checkVersions(
  principal: Principal,
  path: string,
  { versions, latestVersion }: { readonly versions: readonly { readonly version: number }[]; readonly latestVersion: number },
): void {
  for (const { version } of versions) {
    const spelled = version === latestVersion ? [version, `v${version}`, 'latest'] : [version, `v${version}`];
    if (spelled.some((one) => isDenied(principal, `${path}/${one}`))) throw permissionDenied();
  }
}

/** The one place where key material becomes text: the answer is text. */
function exportJson({ name, type, versions }: KeyExport): string {
  const keys = Object.fromEntries(
    versions.map(({ version, form, material: bytes }) => [
      version,
      form === 'base64' ? toBase64(bytes) : Buffer.from(bytes).toString(),
    ]),
  );
  return JSON.stringify({ name, type, keys });
}

const byokExport = operation(
  'byok-export',
  'read',
  { destination: 'string', source: 'string', version: 'string', hash: 'string' },
  async ({ transfers }, { version, hash }, { params }, principal) => {
    const { mount, destination = '', source = '' } = params;
    const { name, type, versions, latestVersion } = await transfers.wrapForTransfer(source, {
      destination,
      version,
      hashFunction: hash,
    });
    checkVersions(principal, `${mount}/byok-export/${destination}/${source}`, { versions, latestVersion });
    return {
      data: JSON.stringify({ name, type, keys: Object.fromEntries(versions.map((each) => [each.version, each.wrapped])) }),
    };
  },
);

const namesBoth = ({ destination, source }: Readonly<Record<string, string>>): boolean =>
  destination !== undefined && source !== undefined && isKeyName(destination) && isKeyName(source);

const backup = operation('backup', 'read', { name: 'string' }, async ({ transfers }, _asked, { params }) => ({
  data: `{"backup":"${toBase64(await transfers.backupKey(params['name'] ?? ''))}"}`,
}));

const restore = operation(
  'restore',
  'update',
  { name: 'string', backup: 'string', force: 'bool' },
  async ({ transfers }, asked, { params }, principal) => {
    // Decision 13: the name that is used may be the one in the backup.
    const mayRestore = (name: string): boolean => !isDenied(principal, `${params['mount']}/restore/${name}`);
    await transfers.restoreKey({ backup: asked.backup, name: params['name'], force: asked.force, mayRestore });
    return {};
  },
);

/** As text, and wipes the bytes. */
function toBase64(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
  bytes.fill(0);
  return text;
}

/** Key material on its way in and out, below a mount. */
export const transitTransferRoutes: readonly Route[] = [
  { path: 'wrapping_key', operations: { GET: { ...wrappingKey, mayWrite: true } } },
  { path: 'keys/:name/import', accepts: namesKey, operations: { POST: { ...importKey, adds: true } } },
  { path: 'keys/:name/import_version', accepts: namesKey, operations: { POST: { ...importVersion, adds: true } } },
  { path: 'export/:key_type/:name', accepts: namesKey, operations: { GET: exportKey } },
  { path: 'export/:key_type/:name/:version', accepts: namesKey, operations: { GET: exportKey } },
  { path: 'byok-export/:destination/:source', accepts: namesBoth, operations: { GET: byokExport } },
  { path: 'byok-export/:destination/:source/:version', accepts: namesBoth, operations: { GET: byokExport } },
  { path: 'backup/:name', accepts: namesKey, operations: { GET: { ...backup, mayWrite: true } } },
  { path: 'restore', operations: { POST: restore } },
  { path: 'restore/:name', accepts: namesKey, operations: { POST: restore } },
];
