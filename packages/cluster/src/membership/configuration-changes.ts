import type { ConfChange, ConfRefusalReason, ConfState, Driver, ProposalOutcome } from '@transitd/raft-core';
import { type CommitResult, StoreError } from '@transitd/storage-fsm';
import { decodeMembership, encodeMembership, type Membership } from './membership.ts';

/** A change of the members: what part each shall have, and the list as it is to be. */
export interface MemberChange {
  readonly members?: Extract<ConfChange, { kind: 'change' }>['members'];
  readonly membership: Membership;
}

/** How often, and how soon again, a change is tried while an earlier one is not committed yet. */
const [tries, againMs] = [50, 100];

/** ConfigurationChanges the configuration of the cluster, one change after the other; only on the leader. */
export class ConfigurationChanges {
  readonly #driver: Driver<CommitResult>;
  readonly #pause: (ms: number) => Promise<void>;
  #last: Promise<unknown> = Promise.resolve();

  constructor(driver: Driver<CommitResult>, pause: (ms: number) => Promise<void>) {
    this.#driver = driver;
    this.#pause = pause;
  }

  /**
   * Makes one change, decided from the configuration in force; resolves when it is committed, or when there is nothing to change.
   * @param decide - may refuse by throwing
   * @throws StoreError
   */
  make(decide: (conf: ConfState, membership: Membership) => MemberChange | undefined): Promise<void> {
    const made = this.#last.then(() => this.#make(decide));
    this.#last = made.catch(() => undefined);
    return made;
  }

  async #make(decide: (conf: ConfState, membership: Membership) => MemberChange | undefined): Promise<void> {
    for (let tried = 0; tried < tries; tried++) {
      const { conf } = this.#driver.consensus();
      const membership = decodeMembership(conf.context);
      const change = decide(conf, membership);
      if (change === undefined) return;
      const { members = [] } = change;
      const context = change.membership === membership ? conf.context : encodeMembership(change.membership);
      const outcome = await new Promise<ProposalOutcome<CommitResult, ConfRefusalReason>>((resolve) =>
        this.#driver.proposeConf({ kind: 'change', members, context }, resolve),
      );
      if (outcome.kind === 'applied') return;
      if (outcome.kind === 'unknown') throw new StoreError('outcome_unknown', 'the change of the members may still take effect');
      const { reason } = outcome;
      if (reason === 'confInvalid') throw new StoreError('stopped', 'the members cannot be changed in this way');
      if (reason !== 'confPending' && reason !== 'busy') throw new StoreError('not_leader', 'this node does not lead');
      await this.#pause(againMs);
    }
    throw new StoreError('busy', 'an earlier change of the members is not finished');
  }
}
