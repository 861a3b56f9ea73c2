import { nextTurn } from '@transitd/event-loop';
import type { RangePage, Store } from '@transitd/storage-fsm';
import { noBytes } from '../algorithms/aead.ts';
import { derivePair } from './derivation.ts';
import { loadedVersion } from './key-cache.ts';
import type { KeyRecord } from './key-record.ts';
import { keyType } from './key-type.ts';
import { type VersionView, versionView } from './key-view.ts';
import type { Paths } from './paths.ts';
import { decodeVersionRecord, type VersionRecord, wipe } from './version-record.ts';

/**
 * The versions that {@link KeyView} shows, from their records.
 * @param context - selects the public key that a derived key pair has for it; else empty
 */
export async function visibleVersions(
  store: Store,
  paths: Paths,
  record: KeyRecord,
  context: Uint8Array = noBytes,
): Promise<VersionView[]> {
  const { id: keyId, minDecryptionVersion, latestVersion } = record;
  // A cipher's derived key is secret and has nothing to show.
  const selects = record.derived && context.length > 0 && keyType(record.type).keyPair !== undefined;
  const versions: VersionView[] = [];
  let after: string | undefined = paths.version({ keyId, version: minDecryptionVersion - 1 });
  while (after !== undefined) {
    const page: RangePage = await store.range({ prefix: paths.versionsOf(keyId), after });
    try {
      for (const { path, value } of page.records) {
        const { version } = paths.parseVersion(path);
        if (version > latestVersion) continue;
        if (selects && versions.length % derivationsPerTurn === derivationsPerTurn - 1) await nextTurn();
        const stored = { ...decodeVersionRecord(value), version };
        versions.push(versionView(record, stored, selects ? derivedPublicKey(record, stored, context) : undefined));
      }
    } finally {
      wipe(page.records);
    }
    after = page.next;
  }
  return versions;
}

/** A few milliseconds' worth. */
const derivationsPerTurn = 20;

function derivedPublicKey(record: KeyRecord, version: VersionRecord, context: Uint8Array): Uint8Array | undefined {
  const type = keyType(record.type);
  const { key } = loadedVersion({ record, type }, version);
  const pair = key && derivePair(type, key, context, record.kdf);
  pair?.material.fill(0);
  return pair?.publicKey;
}
