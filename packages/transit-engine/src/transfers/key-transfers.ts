import type { KeyObject } from 'node:crypto';
import type { Store, Transaction } from '@transitd/storage-fsm';
import { TransitError } from '../errors.ts';
import type { ChangeQueue } from '../keys/change-queue.ts';
import { addVersion, createKey, markBackup, replaceVersion } from '../keys/key.ts';
import type { KeyCache, LoadedKey } from '../keys/key-cache.ts';
import type { KeyRecord } from '../keys/key-record.ts';
import { type KeyType, keyType } from '../keys/key-type.ts';
import { newKeyId, type VersionMaterial, withFreshVersion } from '../keys/new-version.ts';
import { isKeyName, type Paths } from '../keys/paths.ts';
import { storedVersion, unlessGone, versionsBetween } from '../keys/stored-versions.ts';
import { wipeSecrets } from '../keys/version-record.ts';
import { commitAndWipe } from '../secrets.ts';
import { decodeBackup, encodeBackup } from './backup.ts';
import { destinationKey, type WrappedKey, type WrapRequest, wrapVersions } from './byok-export.ts';
import { checkExportType, type ExportRequest, exportKey, type KeyExport } from './key-export.ts';
import {
  checkImported,
  completes,
  type ImportKeyRequest,
  type ImportVersionRequest,
  importedMaterial,
  importSettings,
  importWarnings,
  materialWarnings,
} from './key-import.ts';
import { restoreKey } from './restore.ts';
import { checkKeyPairs } from './whole-key.ts';
import type { WrappingKey } from './wrapping-key.ts';

/** What transfers share with the rest of the engine. */
export interface TransferParts {
  readonly store: Store;
  readonly paths: Paths;
  readonly keys: KeyCache;
  readonly changes: ChangeQueue;
  readonly wrappingKey: WrappingKey;
  readonly now: () => number;
}

/** A backup and where it goes. */
export interface RestoreRequest {
  /** base64. */
  readonly backup?: string | undefined;
  /** The name it had when absent. */
  readonly name?: string | undefined;
  /** Replaces a key of that name. */
  readonly force?: boolean | undefined;
  /** Whether the caller may restore a key of that name, which the backup may have brought. */
  readonly mayRestore?: ((name: string) => boolean) | undefined;
}

/** Key material that comes in from outside or goes out. A refusal is a {@link TransitError}. */
export class KeyTransfers {
  readonly #parts: TransferParts;

  constructor(parts: TransferParts) {
    this.#parts = parts;
  }

  /** The public key, in PEM, under which material is wrapped that comes in. Made when it is first asked for. */
  async wrappingKey(): Promise<string> {
    return (await this.#parts.wrappingKey.get()).publicPem;
  }

  /** A new key of given material. @returns warnings @throws TransitError `invalid_request` */
  async importKey(name: string, request: ImportKeyRequest): Promise<readonly string[]> {
    if (!isKeyName(name)) throw new TransitError('invalid_request', 'invalid key name');
    const settings = importSettings(request);
    const type = keyType(settings.type);
    checkImported(type, settings.derived, request);
    const { store, paths, keys, changes, now } = this.#parts;
    return changes.run(name, async () => {
      if ((await keys.key(name)) !== undefined) throw new TransitError('invalid_request', keyExists);
      const given = await importedMaterial(this.#wrapping, type, request);
      const nowMs = now();
      const id = newKeyId();
      const record = { ...settings, id, keySize: sizeOf(type, given.material), latestCreatedMs: nowMs };
      const transaction = await withFreshVersion({ record, nowMs, given }, (fresh) => createKey(paths, name, record, fresh));
      return (await commitAndWipe(store, transaction)) !== undefined ? importWarnings(request) : undefined;
    });
  }

  /**
   * Material for a key that was imported: a new version, or the private half of one that lacks it.
   * @returns warnings
   * @throws TransitError `key_not_found`, `key_version_unavailable`, `invalid_request`
   */
  async importVersion(name: string, request: ImportVersionRequest): Promise<readonly string[]> {
    const { store, paths, keys, changes } = this.#parts;
    return changes.run(name, async () => {
      const key = await keys.key(name);
      if (key === undefined) {
        const refusal = `no key found with name ${name}; to import a new key, use the import/ endpoint`;
        throw new TransitError('key_not_found', refusal);
      }
      checkTakesVersion(key, request);
      checkImported(key.type, key.record.derived, request);
      const given = await importedMaterial(this.#wrapping, key.type, request);
      const transaction = await unlessGone(store, paths, key, () => this.#withMaterial(key, given, request.version));
      return transaction !== undefined && (await commitAndWipe(store, transaction)) !== undefined
        ? materialWarnings(request)
        : undefined;
    });
  }

  /** Gives the material to the version that lacks it, or makes a new one of it, and wipes it. */
  async #withMaterial(key: LoadedKey, given: VersionMaterial, requested: number | undefined): Promise<Transaction | undefined> {
    const { paths, now } = this.#parts;
    try {
      const completed = key.type.keyPair && (await this.#completed(key, given, requested));
      if (completed !== undefined) return completed;
      const record: KeyRecord = { ...key.record, keySize: sizeOf(key.type, given.material) };
      return await withFreshVersion(
        { record, nowMs: now(), given },
        (fresh) => addVersion(paths, key, record, fresh).transaction,
      );
    } finally {
      given.material.fill(0);
    }
  }

  /** What gives a version its private half; undefined when it lacks none, or another one. */
  async #completed(key: LoadedKey, given: VersionMaterial, requested: number | undefined): Promise<Transaction | undefined> {
    const { store, paths } = this.#parts;
    const present = await storedVersion(store, paths, key.record, requested ?? key.record.latestVersion);
    try {
      if (!completes(given, present.record, requested !== undefined)) return undefined;
      return replaceVersion(paths, key, present, { ...present.record, material: given.material });
    } finally {
      wipeSecrets([present.record]);
    }
  }

  readonly #wrapping = async (): Promise<KeyObject> => (await this.#parts.wrappingKey.get()).privateKey;

  /**
   * Versions of a key, wrapped as imports take them, under the latest public key of another one.
   * @throws TransitError `invalid_request`, `key_not_found`
   */
  async wrapForTransfer(source: string, request: WrapRequest): Promise<WrappedKey> {
    const { store, paths, changes, keys } = this.#parts;
    const destination = await destinationKey(store, paths, await keys.key(request.destination));
    return changes.run(source, async () => {
      const key = await keys.key(source);
      if (key === undefined) throw new TransitError('key_not_found', 'no such source key for export');
      return unlessGone(store, paths, key, () => wrapVersions(store, paths, key, destination, request));
    });
  }

  /** @throws TransitError `not_found`, `invalid_request` */
  async exportKey(name: string, request: ExportRequest): Promise<KeyExport> {
    checkExportType(request.exportType);
    const { store, paths, changes, keys } = this.#parts;
    // In turn with the key's changes, so that the versions read are those of one state.
    return changes.run(name, async () => {
      const key = await keys.key(name);
      if (key === undefined) throw new TransitError('not_found', 'no such key');
      return unlessGone(store, paths, key, () => exportKey(store, paths, key, request));
    });
  }

  /**
   * The key with all its versions and secrets, in clear.
   * @returns bytes that their user wipes
   * @throws TransitError `key_not_found`, `invalid_request`
   */
  async backupKey(name: string): Promise<Buffer> {
    const { store, paths, changes, keys, now } = this.#parts;
    return changes.run(name, async () => {
      const key = await keys.key(name);
      if (key === undefined) throw new TransitError('key_not_found', `key "${name}" not found`);
      if (!key.record.exportable) throw new TransitError('invalid_request', 'exporting is disallowed on the policy');
      if (!key.record.allowPlaintextBackup) {
        throw new TransitError('invalid_request', 'plaintext backup is disallowed on the policy');
      }
      const first = Math.max(key.record.minAvailableVersion, 1);
      const last = key.record.latestVersion;
      const versions = await unlessGone(store, paths, key, () => versionsBetween(store, paths, key.record, { first, last }));
      if (versions === undefined) return undefined;
      try {
        const { record, transaction } = markBackup(paths, key, now());
        if (transaction !== undefined && (await commitAndWipe(store, transaction)) === undefined) return undefined;
        return encodeBackup(name, record, versions);
      } finally {
        wipeSecrets(versions);
      }
    });
  }

  /** @throws TransitError `invalid_request`, `permission_denied`; then nothing was written */
  async restoreKey({ backup = '', name: requested, force = false, mayRestore = () => true }: RestoreRequest): Promise<void> {
    if (backup === '') throw new TransitError('invalid_request', "'backup' must be supplied");
    const whole = await decodeBackup(backup);
    const name = requested ?? whole.name;
    const { store, paths, changes, keys, now } = this.#parts;
    try {
      await checkKeyPairs(whole);
      if (!isKeyName(name)) throw new TransitError('invalid_request', 'invalid key name');
      if (!mayRestore(name)) throw new TransitError('permission_denied', 'permission denied');
      await changes.run(name, async () => {
        const existing = await keys.key(name);
        if (existing !== undefined && !force) throw new TransitError('invalid_request', `key "${name}" already exists`);
        return (await restoreKey(store, paths, existing ?? { name, revision: 0 }, whole, now())) || undefined;
      });
    } finally {
      wipeSecrets(whole.versions);
    }
  }
}

const keyExists = 'the import path cannot be used with an existing key; use import-version to rotate an existing imported key';

/** Bytes as the key's record has them: 0 where the type knows. */
const sizeOf = ({ sizes }: KeyType, material: Uint8Array): number => (sizes === undefined ? 0 : material.length);

function checkTakesVersion({ record, type }: LoadedKey, { version }: ImportVersionRequest): void {
  if (!record.imported) {
    throw new TransitError('invalid_request', 'the import_version endpoint can only be used with an imported key');
  }
  if (version === undefined) return;
  if (version < Math.max(record.minAvailableVersion, 1) || version > record.latestVersion) {
    throw new TransitError('key_version_unavailable', 'no such key version');
  }
  if (type.keyPair === undefined) {
    throw new TransitError('invalid_request', 'provided type does not support importing key versions');
  }
}
