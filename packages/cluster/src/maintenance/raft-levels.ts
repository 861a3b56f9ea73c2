import type { NodeId } from '@transitd/raft-core';
import type { LevelRange } from '@transitd/storage-fsm';
import type { ConfigurationChanges } from '../membership/configuration-changes.ts';
import { decodeMembership } from '../membership/membership.ts';
import type { Storage } from '../ports/storage-port.ts';
import type { ClusterLevels } from './feature-level-control.ts';

interface RaftLevelsParts {
  readonly storage: Pick<Storage, 'driver' | 'machine' | 'replica'>;
  readonly changes: Pick<ConfigurationChanges, 'between'>;
  /** Returns the levels that a member has announced in this term; undefined for a member that has not been heard. */
  readonly announced: (id: NodeId) => LevelRange | undefined;
}

/**
 * Returns the level in the log, and the members of the configuration in force. A member that has not been heard in this term counts by its
 * entry in the member list.
 */
export const raftLevels = ({ storage: { driver, machine, replica }, changes, announced }: RaftLevelsParts): ClusterLevels => ({
  replica,
  level: () => machine.featureLevel,
  others: () => {
    const { nodeId } = driver.status();
    return decodeMembership(driver.consensus().conf.context)
      .members.filter(({ id }) => id !== nodeId)
      .map(({ id, name, levels }) => ({ name, levels: announced(id) ?? levels }));
  },
  // No node may be admitted between the decision and the entry: it might not support the new level.
  undisturbed: (task) => changes.between(task),
});
