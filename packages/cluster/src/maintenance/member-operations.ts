import { RequestError } from '@transitd/http';
import type { ConfState, Driver, NodeId, TransferOutcome } from '@transitd/raft-core';
import { type CommitResult, StoreError } from '@transitd/storage-fsm';
import type { ConfigurationChanges } from '../membership/configuration-changes.ts';
import { KnownNodes } from '../membership/known-nodes.ts';
import { decodeMembership, type Member, type Membership } from '../membership/membership.ts';
import type { Standbys } from '../standbys/standbys.ts';
import { LeadershipTransferred } from '../transport/leadership-transferred.ts';
import { demotion, type Heard, memberCalled, promotion, refuseTooFewVoters, removal } from './member-changes.ts';

export interface OperatorParts {
  readonly driver: Pick<Driver<CommitResult>, 'status' | 'consensus' | 'peers' | 'transfer'>;
  readonly changes: Pick<ConfigurationChanges, 'make'>;
  readonly standbys: Pick<Standbys, 'news' | 'silenced'>;
  /** Members to which this node has no connection: a new leader counts silent ones as heard of for an election timeout. */
  readonly unconnected?: () => readonly NodeId[];
  /** A removal left voters that cannot be reached and know only nodes that have left. */
  readonly onStranded?: (voters: readonly string[]) => void;
}

/** What an operator changes about the members; only on the leader. */
export class MemberOperations {
  readonly #parts: OperatorParts;
  readonly #acquaintances = new KnownNodes();

  constructor(parts: OperatorParts) {
    this.#parts = parts;
  }

  /**
   * The member is one no more, and serves nothing any more; nothing happens for one that is unknown.
   * @param serverId - its name, or its id in decimal
   * @throws RequestError, LeadershipTransferred when it is this node itself, StoreError
   */
  async remove(serverId: string): Promise<void> {
    const id = this.#member(serverId)?.id;
    if (id === undefined) return;
    await this.#handOverIfSelf(id);
    await this.removeNode(id);
  }

  /** @throws RequestError, StoreError */
  async removeNode(id: NodeId, allowed: (conf: ConfState) => boolean = () => true): Promise<boolean> {
    const { changes, standbys } = this.#parts;
    let removed = false;
    await changes.make((conf, membership) => {
      const change = allowed(conf)
        ? removal(conf, membership, { id, shown: standbys.news(id)?.certificate, ...this.#heard() })
        : undefined;
      removed = change !== undefined;
      return change;
    });
    if (removed) this.#warnOfStranded();
    if (removed) await standbys.silenced(id);
    return removed;
  }

  /** Notes which members each member knows by now; on every node, so that the next leader knows it too. */
  observe(): void {
    this.#acquaintances.observe(
      this.#membership.members.map(({ id }) => id),
      this.#connected,
    );
  }

  #warnOfStranded(): void {
    const { members } = this.#membership;
    const { voters } = this.#parts.driver.consensus().conf;
    const stranded = this.#acquaintances.stranded(
      voters,
      members.map(({ id }) => id),
      this.#connected,
    );
    const names = stranded.map((id) => members.find((one) => one.id === id)?.name ?? String(id));
    if (names.length > 0) this.#parts.onStranded?.(names);
  }

  get #connected(): ReadonlySet<NodeId> {
    const away = new Set(this.#parts.unconnected?.());
    return new Set(this.#membership.members.flatMap(({ id }) => (away.has(id) ? [] : [id])));
  }

  /** This node and the members that were heard of within an election timeout. */
  get #active(): ReadonlySet<NodeId> {
    const { driver } = this.#parts;
    return new Set([driver.status().nodeId, ...driver.peers().flatMap(({ id, active }) => (active ? [id] : []))]);
  }

  /** The member votes as soon as it has caught up. @throws RequestError, StoreError */
  async promote(serverId: string): Promise<void> {
    const { id } = this.#requireMember(serverId);
    await this.#parts.changes.make((_conf, membership) => promotion(membership, id));
  }

  /** The member does not vote any more, until it is promoted. @throws RequestError, LeadershipTransferred when it is this node itself, StoreError */
  async demote(serverId: string): Promise<void> {
    const { id } = this.#requireMember(serverId);
    await this.#handOverIfSelf(id);
    await this.#parts.changes.make((conf, membership) => demotion(conf, membership, { id, ...this.#heard() }));
  }

  /** A leader that is to lose its vote gives the lead away first, so that no moment passes without one. */
  async #handOverIfSelf(id: NodeId): Promise<void> {
    const { driver } = this.#parts;
    const { nodeId, term } = driver.status();
    if (id !== nodeId) return;
    refuseTooFewVoters(driver.consensus().conf, id, this.#heard());
    const outcome = await new Promise<TransferOutcome>((resolve) => driver.transfer(undefined, resolve));
    if (outcome.kind === 'resigned') throw new LeadershipTransferred(term);
    throw new StoreError('busy', 'this node leads, and no other voter has taken the lead over from it');
  }

  #heard(): Heard {
    const active = this.#active;
    return { self: this.#parts.driver.status().nodeId, isHeard: (id) => active.has(id) };
  }

  get #membership(): Membership {
    return decodeMembership(this.#parts.driver.consensus().conf.context);
  }

  #member(serverId: string): Member | undefined {
    if (serverId === '') throw new RequestError('invalid_request', 'no server id provided');
    return memberCalled(this.#membership, serverId);
  }

  #requireMember(serverId: string): Member {
    const member = this.#member(serverId);
    if (member === undefined)
      throw new RequestError('invalid_request', `no member has the name or the id ${serverId.slice(0, 64)}`);
    return member;
  }
}
