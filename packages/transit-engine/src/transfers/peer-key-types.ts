import type { TimeSlice } from '@transitd/event-loop';
import { invalidBackup } from './key-backup.ts';
import type { Members } from './peer-members.ts';

/** A version of a peer's key, not yet decoded. */
export interface PeerVersion {
  readonly version: number;
  readonly entry: Members;
}

/** Key types by number, for the numbers on which Vault and OpenBao agree. */
const sharedNumbers: ReadonlyMap<number, string> = new Map([
  [0, 'aes256-gcm96'],
  [1, 'ecdsa-p256'],
  [2, 'ed25519'],
  [3, 'rsa-2048'],
  [4, 'rsa-4096'],
  [5, 'chacha20-poly1305'],
  [6, 'ecdsa-p384'],
  [7, 'ecdsa-p521'],
  [8, 'aes128-gcm96'],
  [9, 'rsa-3072'],
]);

/** From 10 on the numbers differ: 10 is Vault's managed key and OpenBao's HMAC, 11 is Vault's HMAC and OpenBao's XChaCha20. */
const [vaultManagedOrBaoHmac, vaultHmacOrBaoXChaCha20] = [10, 11];

/** Numbers that only Vault uses today. */
const vaultNumbers: ReadonlyMap<number, string> = new Map([
  [12, 'aes128-cmac'],
  [13, 'aes256-cmac'],
]);

const [hmacBytesMin, hmacBytesMax, xChaCha20Bytes] = [32, 512, 32];

/**
 * Returns the type of a key in a backup of Vault or OpenBao. Where their numbers differ, the content decides: in versions of HMAC keys, key
 * and HMAC secret are equal; versions of ciphers have a separate HMAC secret; versions of managed keys have no key. An ambiguous type is
 * refused, because under a wrong type the key's ciphertexts would be lost silently.
 * @param versions - all versions of the key
 * @throws TransitError `invalid_request`
 */
export async function peerKeyType(policy: Members, versions: readonly PeerVersion[], slice: TimeSlice): Promise<string> {
  const number = policy.integer('type');
  const shared = sharedNumbers.get(number);
  if (shared !== undefined) return shared;
  if (number === vaultManagedOrBaoHmac || number === vaultHmacOrBaoXChaCha20) {
    const content = await commonContent(versions, slice);
    if (content === 'hmac') return content;
    if (number === vaultManagedOrBaoHmac && content === 'none') throw notSupported('a managed key, whose material is elsewhere');
    if (number === vaultHmacOrBaoXChaCha20 && content === 'cipher') throw notSupported('xchacha20-poly1305');
    throw invalidBackup(
      `its key type (${number}) means another type in Vault than in OpenBao, and its versions do not show which`,
    );
  }
  const name = vaultNumbers.get(number);
  // Only OpenBao writes this member.
  if (name === undefined || policy.has('soft_deleted')) throw invalidBackup(`its key type (${number}) is not supported`);
  return name;
}

/** Returns what all versions contain; undefined if they differ. */
async function commonContent(versions: readonly PeerVersion[], slice: TimeSlice): Promise<Content | undefined> {
  let common: Content | undefined;
  for (const { entry } of versions) {
    if (slice.isOver) await slice.next();
    const content = contentOf(entry);
    common ??= content;
    if (content !== common) return undefined;
  }
  return common;
}

type Content = 'hmac' | 'cipher' | 'none' | 'unknown';

function contentOf(version: Members): Content {
  const [key, secret] = [version.bytes('key'), version.bytes('hmac_key')];
  try {
    if (key.length === 0) return 'none';
    if (key.equals(secret)) return key.length >= hmacBytesMin && key.length <= hmacBytesMax ? 'hmac' : 'unknown';
    return key.length === xChaCha20Bytes && secret.length > 0 ? 'cipher' : 'unknown';
  } finally {
    key.fill(0);
    secret.fill(0);
  }
}

const notSupported = (type: string): Error => invalidBackup(`keys of this type are not supported: ${type}`);
