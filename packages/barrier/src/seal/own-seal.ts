import type { ReplicatedRecord, ReplicatedWrite, Store } from '@transitd/storage-fsm';
import { type Keyring, openKeyring, wipeKeyring } from '../keyring/keyring.ts';
import type { Keys } from '../keyring/loaded-keys.ts';
import { decryptValue, termOf } from '../keyring/value.ts';
import { BarrierError } from '../records/errors.ts';
import { keyringPath, recoverySharesPath, rootKeyPath, sealPath, unsealKeyPath } from '../records/paths.ts';
import { openRecoveryShares, type RecoveryShares } from './recovery-shares.ts';
import { newWrappingKey, sealWrites } from './root-key-wrapping.ts';
import { type SealConfig, sealOf } from './seal-config.ts';
import { decodeSeal } from './seal-record.ts';

export interface OwnSealParts {
  /** The store with the encrypted records. */
  readonly store: Pick<Store, 'get'>;
  readonly seal: SealConfig;
}

/** The keys of another cluster's state. The caller wipes the root key and the keyring. */
export interface StateKeys extends RecoveryShares {
  readonly rootKey: Uint8Array;
  readonly keyring: Keyring;
}

/**
 * Returns the records with which this cluster's own seal opens a state of another cluster: its own key wraps the root key of that state,
 * and the recovery shares are those of the other cluster. The revisions are those of the records that they replace: if one of them changes
 * meanwhile, they must not be committed.
 * @throws BarrierError `seal_mismatch` if this cluster's seal needs shares; ProviderError; StoreError
 */
export async function ownSealRecords({ store, seal }: OwnSealParts, keys: StateKeys): Promise<ReplicatedRecord[]> {
  // A copy: a caller that wipes the original meanwhile must not make the seal wrap a key of zeros.
  const rootKey = Buffer.from(keys.rootKey);
  try {
    return await sealed({ store, seal }, { ...keys, rootKey });
  } finally {
    rootKey.fill(0);
  }
}

async function sealed({ store, seal }: OwnSealParts, keys: StateKeys): Promise<ReplicatedRecord[]> {
  const [present, unsealKey] = [await store.get(sealPath), await store.get(unsealKeyPath)];
  if (present === undefined) throw new BarrierError('not_initialized', 'transitd is not initialized');
  const own = sealOf(seal, decodeSeal(present.value));
  if (own.type === 'shamir')
    throw new BarrierError(
      'seal_mismatch',
      'the seal of this cluster needs shares, so it cannot wrap the root key of its primary',
    );
  const wrapping = await newWrappingKey(own, new Uint8Array(0)); // only a Shamir seal needs the key of its shares
  const revisions: Readonly<Record<string, number>> = {
    [sealPath]: present.revision,
    [unsealKeyPath]: unsealKey?.revision ?? 0,
  };
  try {
    return sealWrites({ ...keys, wrapping }, keys.keyring.newest).flatMap(({ path, value }) =>
      value === null ? [] : [{ path, value, revision: revisions[path] ?? 0 }],
    );
  } finally {
    wrapping.key.fill(0);
  }
}

/**
 * Returns the records of this cluster's own seal that must be committed in one entry with these writes of the primary: none, unless they
 * bring a keyring under another root key. `unknown`: the writes do not contain that root key in a form that this cluster can decrypt.
 * @throws as {@link ownSealRecords} does
 */
export async function ownSealFor(
  writes: readonly ReplicatedWrite[],
  { keys, ...parts }: OwnSealParts & { readonly keys: () => Keys },
): Promise<ReplicatedRecord[] | 'unknown'> {
  const written = (path: string): Uint8Array | undefined => writes.find((write) => write.path === path)?.value ?? undefined;
  const keyringValue = written(keyringPath);
  if (keyringValue === undefined) return [];
  const rotated = openKeyring(keys().rootKey, keyringValue);
  if (rotated !== undefined) {
    wipeKeyring(rotated);
    return [];
  }
  const rootKey = newRootKey(keys(), written(rootKeyPath));
  const shares = written(recoverySharesPath);
  const keyring = rootKey && openKeyring(rootKey, keyringValue);
  try {
    if (rootKey === undefined || keyring === undefined || shares === undefined) return 'unknown';
    return await ownSealRecords(parts, { rootKey, keyring, ...openRecoveryShares(keyring.terms, shares) });
  } finally {
    rootKey?.fill(0);
    if (keyring !== undefined) wipeKeyring(keyring);
  }
}

/** Returns the root key after a rekey of the primary, which a key of the present keyring decrypts; the caller wipes it. */
function newRootKey({ keyring }: Keys, stored: Uint8Array | undefined): Buffer | undefined {
  const term = stored && keyring.terms.get(termOf(rootKeyPath, stored));
  return stored && term && decryptValue(term, rootKeyPath, stored);
}
