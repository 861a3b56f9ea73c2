import type { ConfState, Fitness, NodeId } from '@transitd/raft-core';

export interface FitnessParts {
  readonly serves: boolean;
  readonly initialized: boolean;
  readonly alone: boolean;
  /** Its records are known to be others than the cluster's. */
  readonly differs: boolean;
  readonly diskLow: boolean;
}

/**
 * Whether a node may lead. A sealed one may not but to hand over. Exempt is one that does not know the cluster's keys yet, or is alone: it
 * has to lead to apply what its log holds. One whose records are known to be others than the cluster's never leads.
 */
export function fitnessOf({ serves, initialized, alone, differs, diskLow }: FitnessParts): Fitness {
  const mayLead = (serves || !initialized || alone) && !differs;
  return mayLead ? (diskLow ? 'low' : 'fit') : 'sealed';
}

/** This node is all that its cluster has. */
export function isAlone(conf: ConfState, nodeId: NodeId): boolean {
  const others = [...conf.voters, ...conf.votersOutgoing, ...conf.learners].filter((id) => id !== nodeId);
  return others.length === 0 && conf.voters.length === 1;
}
