import { oneAtATime } from '@transitd/event-loop';
import type { ConfChange, ConfRefusalReason, ConfState, Driver, ProposalOutcome } from '@transitd/raft-core';
import { type CommitResult, StoreError } from '@transitd/storage-fsm';
import type { Pauses } from '../ports/pauses.ts';
import { decodeMembership, encodeMembership, type Membership } from './membership.ts';

/** A membership change: new roles of members, and the new membership. */
export interface MemberChange {
  readonly members?: Extract<ConfChange, { kind: 'change' }>['members'];
  readonly membership: Membership;
}

/** Returns the change of a configuration; undefined for none. */
export type Decision = (conf: ConfState, membership: Membership) => MemberChange | undefined;

/** Attempts, and the pause between them, while an earlier change is not committed yet. */
const [attemptsMax, retryMs] = [50, 100];

/** Changes the cluster's Raft configuration, one change at a time; only on the leader. */
export class ConfigurationChanges {
  readonly #driver: Driver<CommitResult>;
  readonly #pauses: Pick<Pauses, 'pause'>;
  readonly #exclusively = oneAtATime();

  constructor(driver: Driver<CommitResult>, pauses: Pick<Pauses, 'pause'>) {
    this.#driver = driver;
    this.#pauses = pauses;
  }

  /**
   * Makes one change, decided from a committed configuration: one that is not may be rolled back, and with it the reason for a decision.
   * Resolves with the change when it is committed, or with undefined when there is nothing to change.
   * @param decide - called again after an attempt that was not taken; throws to refuse
   * @throws StoreError
   */
  make(decide: Decision): Promise<MemberChange | undefined> {
    return this.#exclusively(() => this.#make(decide));
  }

  /** Runs a task between two changes: none is made while it runs. @throws what the task throws */
  between<T>(task: () => Promise<T>): Promise<T> {
    return this.#exclusively(task);
  }

  async #make(decide: Decision): Promise<MemberChange | undefined> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const { conf, confIndex, committedConfIndex } = this.#driver.consensus();
      if (confIndex > committedConfIndex) {
        await this.#pauses.pause(retryMs);
        continue;
      }
      const membership = decodeMembership(conf.context);
      const change = decide(conf, membership);
      if (change === undefined) return undefined;
      const { members = [] } = change;
      const context = change.membership === membership ? conf.context : encodeMembership(change.membership);
      const outcome = await new Promise<ProposalOutcome<CommitResult, ConfRefusalReason>>((resolve) =>
        this.#driver.proposeConf({ kind: 'change', members, context }, resolve),
      );
      if (outcome.kind === 'applied') return change;
      if (outcome.kind === 'unknown')
        throw new StoreError('outcome_unknown', 'the outcome of the membership change is unknown: it may still take effect');
      const { reason } = outcome;
      if (reason === 'confInvalid') throw new StoreError('stopped', 'this membership change is invalid');
      if (reason !== 'confPending' && reason !== 'busy') throw new StoreError('not_leader', 'this node is not the leader');
      await this.#pauses.pause(retryMs);
    }
    throw new StoreError('busy', 'an earlier membership change is not committed yet');
  }
}
