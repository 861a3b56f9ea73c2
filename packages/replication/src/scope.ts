/**
 * Prefixes of the records that belong to one cluster and are not replicated. Everything else is: keys, mounts, policies, tokens, the
 * keyring, the seal, the audit key and the canary.
 */
export const localPrefixes: readonly string[] = [
  // The authority signs the certificates of this cluster's nodes.
  'core/cluster-authority',
  'core/autopilot',
  // The secondaries of this cluster, and its own credential at a primary.
  'core/replication/',
];
