/** In clear: the seal's type, shares' hashes and the wrapped root key. */
export const sealPath = 'core/seal';
/** Under the root key: the keys of all terms. */
export const keyringPath = 'core/keyring';
/** Under the newest key of its time: the root key, by which nodes that are unsealed already follow a rekey. */
export const rootKeyPath = 'core/root-key';
/** Under the newest key of its time: the key that the shares of a shamir seal give, by which the leader shows a joining node that it knows it. */
export const unsealKeyPath = 'core/unseal-key';
/** An ordinary value: when the newest key is replaced by itself. */
export const rotationPath = 'core/rotation-config';

/** True for the records that only the barrier itself reads and writes. */
export const isReserved = (path: string): boolean => reserved.has(path);

const reserved: ReadonlySet<string> = new Set([sealPath, keyringPath, rootKeyPath, unsealKeyPath]);
