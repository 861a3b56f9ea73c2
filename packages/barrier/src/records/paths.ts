/** Plaintext JSON: the seal's type, the hashes of its shares and the wrapped root key. */
export const sealPath = 'core/seal';
/** The keys of all terms, encrypted under the root key. */
export const keyringPath = 'core/keyring';
/** The root key, encrypted under the newest key at the time of a rekey. Nodes that are unsealed read it to follow the rekey. */
export const rootKeyPath = 'core/root-key';
/**
 * The key that wraps the root key, encrypted under the newest key at the time of writing: the key that the shares of a Shamir seal combine
 * to, or the key that a provider has encrypted. With it the leader proves to a joining node that it knows that key.
 */
export const unsealKeyPath = 'core/unseal-key';
/**
 * The counts and hashes of the recovery shares, encrypted under the newest key at the time of writing. A cluster that replicates this one
 * and has a seal of its own reads it. A Shamir seal has no such record.
 */
export const recoverySharesPath = 'core/recovery-shares';
/** An ordinary value: the configuration of automatic key rotation. */
export const rotationPath = 'core/rotation-config';

/** Returns true for the records that only the barrier itself reads and writes. */
export const isReserved = (path: string): boolean => reserved.has(path);

const reserved: ReadonlySet<string> = new Set([sealPath, keyringPath, rootKeyPath, unsealKeyPath, recoverySharesPath]);
