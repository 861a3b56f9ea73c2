/**
 * Prefixes of the records that belong to one cluster and are not replicated. All other records are replicated: keys, mounts, policies,
 * tokens, the keyring, the seal, the audit key and the canary.
 */
export const localPrefixes: readonly string[] = [
  // The authority signs the certificates of this cluster's nodes.
  'core/cluster-authority',
  'core/autopilot',
  // The registry of secondaries, and this cluster's own credential for its primary.
  'core/replication/',
];

/**
 * The records of the seal. Clusters with a Shamir seal replicate them, because the primary's shares open the secondary. Clusters whose
 * seals need no shares each have their own.
 */
const sealPrefixes: readonly string[] = ['core/seal', 'core/unseal-key'];

/** Whether the clusters of a set share one Shamir seal, or each have a seal of their own that needs no shares. */
export type SetSeal = 'shared' | 'own';

/** Returns the prefixes of the records that are local to each cluster of a set. */
export const localPrefixesOf = (seal: SetSeal): readonly string[] =>
  seal === 'own' ? [...localPrefixes, ...sealPrefixes] : localPrefixes;

/** Returns whether the clusters of a set with these local prefixes share their seal. */
export const setSealOf = (local: readonly string[]): SetSeal =>
  sealPrefixes.every((prefix) => local.includes(prefix)) ? 'own' : 'shared';
