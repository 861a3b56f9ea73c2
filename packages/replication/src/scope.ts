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
