import type { ConfState, NodeId } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import type { Storage } from '../node/storage.ts';
import { type NodeIdentity, writeIdentity } from './identity.ts';
import { decodeMembership, type Member, type Membership, nobody, type Standing, standingOf } from './membership.ts';

/** Who belongs to the cluster, as this node knows it, and by what it is known itself. */
export class Roster {
  readonly #directory: string;
  #identity: NodeIdentity | undefined;
  #membership: Membership = nobody;
  #storage: Storage | undefined;

  constructor(directory: string, identity: NodeIdentity | undefined) {
    this.#directory = directory;
    this.#identity = identity;
  }

  /** Absent on a founder that has not been active since it got a cluster address. */
  get identity(): NodeIdentity | undefined {
    return this.#identity;
  }

  requireIdentity(): NodeIdentity {
    if (this.#identity === undefined) throw new StoreError('stopped', 'this node has no certificate yet');
    return this.#identity;
  }

  /** Puts an identity in force, durably. @throws errors of the file system */
  async become(identity: NodeIdentity): Promise<void> {
    await writeIdentity(this.#directory, identity);
    this.#identity = identity;
  }

  /** From now on the log tells. */
  follow(storage: Storage): void {
    this.#storage = storage;
    this.configured(storage.driver.consensus().conf);
  }

  /** The configuration in force has changed. */
  configured({ context }: Pick<ConfState, 'context'>): void {
    this.#membership = decodeMembership(context);
  }

  get membership(): Membership {
    return this.#membership;
  }

  /** Everybody, as the log tells; before it does, as was told at the join. */
  get members(): readonly Member[] {
    return this.#membership.members.length > 0 ? this.#membership.members : (this.#identity?.seeds ?? []);
  }

  /** Ids of the members and of those that were removed. */
  get known(): readonly NodeId[] {
    return [...this.members, ...this.#membership.removed].map(({ id }) => id);
  }

  member(id: NodeId): Member | undefined {
    return this.members.find((member) => member.id === id);
  }

  /** Whose certificate that is. Removed counts only when it is committed: a configuration in force may be rolled back. */
  standing(fingerprint: string): Standing | undefined {
    const standing = standingOf({ ...this.#membership, members: this.members }, fingerprint);
    return standing?.standing === 'removed' && !this.#isCommitted ? undefined : standing;
  }

  /** As of which entry a node is known to be removed for good. */
  removedAt(id: NodeId): number | undefined {
    const isRemoved = this.#membership.removed.some((one) => one.id === id);
    return isRemoved && this.#isCommitted ? this.#storage?.driver.consensus().confIndex : undefined;
  }

  get #isCommitted(): boolean {
    const status = this.#storage?.driver.consensus();
    return status !== undefined && status.confIndex <= status.commitIndex;
  }
}
