import type { SealStatus } from '@transitd/barrier';
import { ReplicationError, type SetSeal } from '@transitd/replication';

/**
 * Returns how the clusters of a set with this seal unseal.
 * @throws ReplicationError `seal_type` while the configuration moves from this seal to another one: in a set, a seal is not migrated
 */
export function setSealFor({ type, migration }: Pick<SealStatus, 'type' | 'migration'>): SetSeal {
  if (migration)
    throw new ReplicationError(
      'seal_type',
      `this cluster is to move from its seal of type ${type} to another one: finish the migration, or remove migrate_seal_from and restart`,
    );
  return type === 'shamir' ? 'shared' : 'own';
}

/** Checks that a cluster can follow a primary whose set has this seal. @throws ReplicationError `seal_type` */
export function requireSealOf(set: SetSeal, status: Pick<SealStatus, 'type' | 'migration'>): void {
  if (setSealFor(status) === set) return;
  const primary = set === 'shared' ? 'a shamir seal' : 'a seal that needs no shares';
  throw new ReplicationError(
    'seal_type',
    `the primary has ${primary}, and this cluster has a seal of type ${status.type}: ` +
      'use shamir on both clusters, or on both clusters any of the types that need no shares (static, transit, pkcs11, awskms, ' +
      'azurekeyvault, gcpckms)',
  );
}
