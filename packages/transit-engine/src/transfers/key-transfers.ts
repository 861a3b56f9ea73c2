import type { KeyObject } from 'node:crypto';
import { runInSlices } from '@transitd/event-loop';
import type { RecordClock } from '@transitd/process';
import type { Store, Transaction } from '@transitd/storage-fsm';
import type { ChangeQueue } from '../keys/change-queue.ts';
import { addVersion, checkMayUpdate, createKey, heldBack, markBackup, replaceVersion } from '../keys/key.ts';
import type { KeyCache, LoadedKey } from '../keys/key-cache.ts';
import type { KeyConfirmations } from '../keys/key-confirmations.ts';
import { checkNotDeleted, type KeyRecord } from '../keys/key-record.ts';
import { type KeyType, keyType } from '../keys/key-type.ts';
import { newKeyId, newRecord, type VersionMaterial, withFreshVersion } from '../keys/new-version.ts';
import { isKeyName, type Paths } from '../keys/paths.ts';
import { storedVersion, unlessGone, versionsBetween } from '../keys/stored-versions.ts';
import type { UseTally } from '../keys/use-tally.ts';
import { wipeSecrets } from '../keys/version-record.ts';
import { permissionDenied, TransitError } from '../values/errors.ts';
import { commitAndWipe } from '../values/secrets.ts';
import { backupSteps, decodeBackup } from './backup.ts';
import { destinationOf, type WrappedKey, type WrapRequest, wrapVersions } from './byok-export.ts';
import { type KeyBackup, versionsMax } from './key-backup.ts';
import { checkExport, type ExportRequest, exportKey, type KeyExport } from './key-export.ts';
import {
  checkImported,
  type ImportKeyRequest,
  type ImportVersionRequest,
  importedMaterial,
  importSettings,
  importWarnings,
  isMissingHalf,
  materialWarnings,
} from './key-import.ts';
import { PairChecks } from './pair-checks.ts';
import { type Replaced, restoreKey } from './restore.ts';
import { archivedKey, type ReadRecords } from './salvage.ts';
import type { WrappingKey } from './wrapping-key.ts';

/** The parts of the engine that transfers use. */
export interface TransferParts {
  readonly store: Store;
  readonly paths: Paths;
  readonly keys: KeyCache;
  readonly changes: ChangeQueue;
  readonly confirmations: KeyConfirmations;
  readonly wrappingKey: WrappingKey;
  readonly clock: RecordClock;
}

/** A request to restore a backup. */
export interface RestoreRequest {
  /** base64. */
  readonly backup?: string | undefined;
  /** The name in the backup when absent. */
  readonly name?: string | undefined;
  /** Replaces an existing key of that name. */
  readonly force?: boolean | undefined;
  /** Returns whether the caller may restore a key of this name, which may come from the backup. */
  readonly mayRestore?: ((name: string) => boolean) | undefined;
}

/** Import, export, backup and restore of keys. A refusal is a {@link TransitError}. */
export class KeyTransfers {
  readonly #parts: TransferParts;
  readonly #pairChecks = new PairChecks();
  /** Key ids of restores in progress. */
  readonly #restoring = new Set<string>();

  constructor(parts: TransferParts) {
    this.#parts = parts;
  }

  /** Returns whether the versions of a key id are being restored: until the end, no name refers to them. */
  isRestoring(keyId: string): boolean {
    return this.#restoring.has(keyId);
  }

  /** Returns the public key, in PEM, under which callers wrap material for import. It is created on first use. */
  async wrappingKey(): Promise<string> {
    return (await this.#parts.wrappingKey.get()).publicPem;
  }

  /** Imports a new key. @returns warnings @throws TransitError `invalid_request`, `permission_denied` */
  async importKey(name: string, request: ImportKeyRequest): Promise<readonly string[]> {
    if (!isKeyName(name)) throw new TransitError('invalid_request', 'invalid key name');
    const settings = importSettings(request);
    const type = keyType(settings.type);
    checkImported(type, settings.derived, request);
    const { store, paths, keys, clock } = this.#parts;
    return this.#making(name, async (isHeld) => {
      if ((await keys.key(name)) !== undefined) {
        checkMayUpdate(request);
        throw new TransitError('invalid_request', keyExists);
      }
      const given = await importedMaterial(this.#wrapping, type, request);
      const nowMs = clock.dueMs();
      const id = newKeyId();
      const record = newRecord({ ...settings, id, keySize: sizeOf(type, given.material), latestCreatedMs: nowMs }, isHeld);
      const transaction = await withFreshVersion({ record, nowMs, given }, (fresh) => createKey(paths, name, record, fresh));
      return (await commitAndWipe(store, transaction)) !== undefined ? importWarnings(request) : undefined;
    });
  }

  /**
   * Imports material into an imported key: a new version, or the missing private half of a version.
   * @returns warnings
   * @throws TransitError `key_not_found`, `key_version_unavailable`, `invalid_request`
   */
  async importVersion(name: string, request: ImportVersionRequest): Promise<readonly string[]> {
    const { store, paths, keys } = this.#parts;
    return this.#making(name, async (isHeld) => {
      const key = await keys.key(name);
      if (key === undefined) {
        const refusal = `no key found with name ${name}; to import a new key, use the import/ endpoint`;
        throw new TransitError('key_not_found', refusal);
      }
      checkTakesVersion(key, request);
      checkImported(key.type, key.record.derived, request);
      const given = await importedMaterial(this.#wrapping, key.type, request);
      const transaction = await unlessGone(store, paths, key, () =>
        this.#withMaterial(isHeld ? heldBack(key) : key, given, request.version),
      );
      return transaction !== undefined && (await commitAndWipe(store, transaction)) !== undefined
        ? materialWarnings(request)
        : undefined;
    });
  }

  /** Runs a change that makes key material, and waits until the material may be used. Returns the warnings of both. */
  async #making(name: string, change: (isHeld: boolean) => Promise<readonly string[] | undefined>): Promise<readonly string[]> {
    const { changes, confirmations } = this.#parts;
    const { made, warnings } = await confirmations.making(name, (isHeld) => changes.run(name, () => change(isHeld)));
    return [...made, ...warnings];
  }

  /** Adds the material to the version that lacks it, or as a new version, and wipes it. */
  async #withMaterial(key: LoadedKey, given: VersionMaterial, requested: number | undefined): Promise<Transaction | undefined> {
    const { paths, clock } = this.#parts;
    try {
      const completed = key.type.keyPair && (await this.#completed(key, given, requested));
      if (completed !== undefined) return completed;
      const record: KeyRecord = { ...key.record, keySize: sizeOf(key.type, given.material) };
      return await withFreshVersion(
        { record, nowMs: clock.dueMs(), given },
        (fresh) => addVersion(paths, key, record, fresh, clock.utcMs()).transaction,
      );
    } finally {
      given.material.fill(0);
    }
  }

  /** Returns the transaction that adds the private half to a version; undefined if the material is not its missing half. */
  async #completed(key: LoadedKey, given: VersionMaterial, requested: number | undefined): Promise<Transaction | undefined> {
    const { store, paths } = this.#parts;
    const present = await storedVersion(store, paths, key.record, requested ?? key.record.latestVersion);
    try {
      if (!isMissingHalf(given, present.record, requested !== undefined)) return undefined;
      return replaceVersion(paths, key, present, { ...present.record, material: given.material });
    } finally {
      wipeSecrets([present.record]);
    }
  }

  readonly #wrapping = async (): Promise<KeyObject> => (await this.#parts.wrappingKey.get()).privateKey;

  /**
   * Wraps versions of a key for an import by another service, under the latest public key of another key.
   * @param tally - counts each as an encryption under the destination
   * @throws TransitError `invalid_request`, `key_not_found`
   */
  async wrapForTransfer(source: string, request: WrapRequest, tally?: UseTally): Promise<WrappedKey> {
    const { store, paths, changes, keys } = this.#parts;
    const destination = await destinationOf(store, paths, await keys.key(request.destination));
    const made = await changes.run(source, async () => {
      const key = await keys.key(source);
      if (key === undefined) throw new TransitError('key_not_found', 'no such source key for export');
      checkNotDeleted(key.record);
      return unlessGone(store, paths, key, () => wrapVersions(store, paths, key, destination, request));
    });
    tally?.begin(destination);
    for (const _ of made.versions) tally?.add('encryptions', destination.version);
    return made;
  }

  /** @throws TransitError `not_found`, `invalid_request` */
  async exportKey(name: string, request: ExportRequest): Promise<KeyExport> {
    checkExport(request);
    const { store, paths, changes, keys } = this.#parts;
    // Under the key's lock, so that all versions are read in one state of the key.
    return changes.run(name, async () => {
      const key = await keys.key(name);
      if (key === undefined) throw new TransitError('not_found', 'no such key');
      checkNotDeleted(key.record);
      return unlessGone(store, paths, key, () => exportKey(store, paths, key, request));
    });
  }

  /**
   * Backs up a key with all versions and secrets, in plaintext.
   * @returns bytes that the caller wipes
   * @throws TransitError `key_not_found`, `invalid_request`
   */
  async backupKey(name: string): Promise<Buffer> {
    const { store, paths, changes, keys, clock } = this.#parts;
    return changes.run(name, async () => {
      const key = await keys.key(name);
      if (key === undefined) throw new TransitError('key_not_found', `key "${name}" not found`);
      if (key.record.confirmedVersion !== undefined) throw new TransitError('unconfirmed', backupTooEarly(name));
      if (!key.record.exportable) throw new TransitError('invalid_request', 'exporting is disallowed on the policy');
      if (!key.record.allowPlaintextBackup) {
        throw new TransitError('invalid_request', 'plaintext backup is disallowed on the policy');
      }
      const first = Math.max(key.record.minAvailableVersion, 1);
      const last = key.record.latestVersion;
      if (last - first >= versionsMax) throw new TransitError('invalid_request', tooLargeToRestore);
      const versions = await unlessGone(store, paths, key, () => versionsBetween(store, paths, key.record, { first, last }));
      if (versions === undefined) return undefined;
      try {
        const { record, transaction } = markBackup(paths, key, clock.dueMs());
        if (transaction !== undefined && (await commitAndWipe(store, transaction)) === undefined) return undefined;
        return await runInSlices(backupSteps(name, record, versions));
      } finally {
        wipeSecrets(versions);
      }
    });
  }

  /** @returns warnings @throws TransitError `invalid_request`, `permission_denied`, `unconfirmed`; nothing is written then */
  async restoreKey(request: RestoreRequest): Promise<readonly string[]> {
    const { backup = '', name: requested, force = false, mayRestore = () => true } = request;
    if (backup === '') throw new TransitError('invalid_request', "'backup' must be supplied");
    const whole = await decodeBackup(backup);
    const name = requested ?? whole.name;
    const { keys } = this.#parts;
    try {
      await this.#pairChecks.check(whole);
      if (!isKeyName(name)) throw new TransitError('invalid_request', 'invalid key name');
      if (!mayRestore(name)) throw permissionDenied('deny');
      return await this.#making(name, async (isHeld) => {
        const existing = await keys.key(name);
        if (existing !== undefined && !force) throw new TransitError('invalid_request', `key "${name}" already exists`);
        return (await this.#restored(existing ?? { name, revision: 0 }, whole, isHeld)) ? [] : undefined;
      });
    } finally {
      wipeSecrets(whole.versions);
    }
  }

  /**
   * Restores a key of another state of this mount under a name that no key has. Unlike a backup, this needs no permission of the key: the
   * other state has been one of this cluster.
   * @param source - the key's name in that state
   * @returns warnings
   * @throws TransitError `key_not_found`, `invalid_request`, `unconfirmed`; nothing is written then
   */
  async salvageKey(source: string, name: string, read: ReadRecords): Promise<readonly string[]> {
    if (!isKeyName(source) || !isKeyName(name)) throw new TransitError('invalid_request', 'invalid key name');
    const { paths, keys } = this.#parts;
    const whole = await archivedKey(paths, source, read);
    try {
      return await this.#making(name, async (isHeld) => {
        if ((await keys.key(name)) !== undefined) throw new TransitError('invalid_request', 'a key of this name already exists');
        return (await this.#restored({ name, revision: 0 }, whole, isHeld)) ? [] : undefined;
      });
    } finally {
      wipeSecrets(whole.versions);
    }
  }

  /** Returns whether the key was restored; see {@link restoreKey}. */
  async #restored(replaced: Replaced, backup: KeyBackup, isHeld: boolean): Promise<boolean> {
    const { store, paths, clock } = this.#parts;
    const id = newKeyId();
    this.#restoring.add(id);
    try {
      return await restoreKey(store, paths, replaced, backup, { id, nowMs: clock.dueMs(), utcMs: clock.utcMs(), isHeld });
    } finally {
      this.#restoring.delete(id);
    }
  }
}

const tooLargeToRestore = `the key has more than ${versionsMax} versions, which no restore accepts: trim it first`;
const backupTooEarly = (name: string): string =>
  `the secondary clusters have not confirmed the newest version of key ${name} yet: try again later`;
const keyExists = 'the import path cannot be used with an existing key; use import-version to rotate an existing imported key';

/** Returns the key size for the record: 0 for types with a fixed size. */
const sizeOf = ({ sizes }: KeyType, material: Uint8Array): number => (sizes === undefined ? 0 : material.length);

function checkTakesVersion({ record, type }: LoadedKey, { version }: ImportVersionRequest): void {
  checkNotDeleted(record);
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
