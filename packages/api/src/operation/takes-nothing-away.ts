/**
 * Names of the operations on the active node whose answers do not wait until each node has the change: they take nothing away that another
 * node could still grant. Every other change waits (decision 50), so a new operation waits unless it is named here.
 */
export const takesNothingAway: ReadonlySet<string> = new Set([
  // They add rights, keys or mounts.
  ...['approle-secret-id', 'auth-enable', 'keys-create', 'keys-import', 'mount-enable', 'token-create'],
  ...['keys-soft-delete-restore', 'keys-version-enable'],
  ...['wrapping-wrap', 'dr-primary-salvage', 'dr-secondary-disable', 'dr-secondary-promote', 'dr-secondary-token'],
  // They change only the cluster: its members, its authority, its level, its place in a replication set.
  ...['feature-level-raise', 'raft-authority-rotate', 'raft-demote', 'raft-promote', 'step-down'],
  ...['dr-primary-disable', 'dr-primary-enable', 'dr-revoke-secondary', 'dr-secondary-generate-public-key'],
  ...['dr-secondary-recover', 'dr-secondary-update-primary'],
  // They change only an attempt in the memory of the active node, or add a token.
  ...['generate-root-cancel', 'generate-root-start', 'generate-root-status', 'generate-root-update'],
  'rekey-verification-cancel',
  // They change nothing.
  ...[
    'feature-level',
    'ha-status',
    'keys-usage',
    'raft-authority-status',
    'raft-autopilot-state',
    'raft-snapshot',
    'rekey-status',
  ],
  'rekey-verification-status',
]);
