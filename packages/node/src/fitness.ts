import type { ConfState, Fitness, NodeId } from '@transitd/raft-core';
import type { BaseMember } from './member.ts';
import type { RaftEngine } from './storage/raft-engine.ts';

/** The state of a node on which its fitness depends. */
interface FitnessState {
  /** The barrier is unsealed and the services are loaded. */
  readonly isUnsealed: boolean;
  /** The node is opening by itself a state that replaced its own. */
  readonly isReopening: boolean;
  readonly initialized: boolean;
  /** The node is the only member. */
  readonly alone: boolean;
  /** A state digest showed that its records differ from the cluster's. */
  readonly stateDigestDiffers: boolean;
  readonly diskLow: boolean;
}

/**
 * Returns whether a node may lead. A sealed node may lead only until it has transferred the leadership. A node without the cluster's keys
 * and a node that is the only member may lead while sealed: they must lead to apply their log. So may a node that reopens its state: the
 * other nodes have received the same state, so none of them could take the leadership over. A node whose records differ from the cluster's
 * never leads.
 */
export function fitnessOf({ isUnsealed, isReopening, initialized, alone, stateDigestDiffers, diskLow }: FitnessState): Fitness {
  const mayLead = (isUnsealed || isReopening || !initialized || alone) && !stateDigestDiffers;
  return mayLead ? (diskLow ? 'low' : 'fit') : 'sealed';
}

/** Returns whether a node is the only member of its cluster. */
export function isAlone(conf: ConfState, nodeId: NodeId): boolean {
  const others = [...conf.voters, ...conf.votersOutgoing, ...conf.learners].filter((id) => id !== nodeId);
  return others.length === 0 && conf.voters.length === 1;
}

/**
 * Tells consensus whether this node may lead. Called after each change that it depends on, and every second: nothing reports that a disk
 * has room again.
 */
export function updateFitness({
  engine,
  barrier,
  role,
  seal,
}: Pick<BaseMember<RaftEngine>, 'barrier' | 'engine' | 'role' | 'seal'>): void {
  const { driver, replica } = engine;
  driver.setFitness(
    fitnessOf({
      isUnsealed: role.isUnsealed,
      isReopening: seal.isReopening,
      initialized: barrier.state.initialized,
      alone: isAlone(driver.consensus().conf, driver.status().nodeId),
      stateDigestDiffers: role.verdict === 'different',
      diskLow: replica.status().diskLow,
    }),
  );
}
