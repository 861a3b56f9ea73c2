import type { Logger } from '@transitd/process';
import type { ConfState, Driver, NodeId, TransferOutcome } from '@transitd/raft-core';
import { type CommitResult, StoreError } from '@transitd/storage-fsm';
import type { ConfigurationChanges } from '../membership/configuration-changes.ts';
import { KnownNodes } from '../membership/known-nodes.ts';
import { decodeMembership, type Member, type Membership } from '../membership/membership.ts';
import { ClusterError } from '../refusals/cluster-error.ts';
import type { Standbys } from '../standbys/standbys.ts';
import { LeadershipTransferred } from '../transport/forwarder.ts';
import { demotion, findMember, promotion, refuseTooFewVoters, removal, type VoterContact, wasRemoved } from './member-changes.ts';

export interface MemberOperationsOptions {
  readonly driver: Pick<Driver<CommitResult>, 'status' | 'consensus' | 'peers' | 'transfer'>;
  readonly changes: Pick<ConfigurationChanges, 'make'>;
  readonly standbys: Pick<Standbys, 'report' | 'servingEnded'>;
  /** Names members that this node is not connected to: a new leader counts silent members as active for an election timeout. */
  readonly transport: { readonly unconnected: readonly NodeId[] };
  readonly log: Logger;
}

/** The membership changes that an operator asks for: remove, promote, demote. Only on the leader. */
export class MemberOperations {
  readonly #options: MemberOperationsOptions;
  readonly #knownNodes = new KnownNodes();

  constructor(options: MemberOperationsOptions) {
    this.#options = options;
  }

  /**
   * Removes a member; resolves when that member can no longer serve. Does nothing for a member that was removed already: a client may
   * repeat a request whose answer was lost.
   * @param serverId - name of the member, or its id in decimal
   * @throws ClusterError `invalid_request`; LeadershipTransferred when the member is this node; StoreError
   */
  async remove(serverId: string): Promise<void> {
    if (await this.#isRemoved(serverId)) return;
    const { id } = this.#requireMember(serverId);
    await this.#transferLeadershipIfSelf(id);
    await this.removeNode(id);
  }

  /**
   * Removes a member by id; resolves with whether it was removed.
   * @param allowed - checked with the configuration in force at the change
   * @throws ClusterError, StoreError
   */
  async removeNode(id: NodeId, allowed: (conf: ConfState) => boolean = () => true): Promise<boolean> {
    const { changes, standbys } = this.#options;
    const change = await changes.make((conf, membership) =>
      allowed(conf)
        ? removal(conf, membership, { id, certificate: standbys.report(id)?.certificate, ...this.#contact() })
        : undefined,
    );
    if (change === undefined) return false;
    this.#warnOfIsolated();
    await standbys.servingEnded(id);
    return true;
  }

  /** Records which members each connected member knows. Every node does so, because each may become the leader. */
  observe(): void {
    this.#knownNodes.observe(
      this.#membership.members.map(({ id }) => id),
      this.#connected,
    );
  }

  /** Names the voters that are unreachable after a removal, and whose logs may name only removed nodes. */
  #warnOfIsolated(): void {
    const { members } = this.#membership;
    const { voters } = this.#options.driver.consensus().conf;
    const isolated = this.#knownNodes.isolated(
      voters,
      members.map(({ id }) => id),
      this.#connected,
    );
    const names = isolated.map((id) => members.find((one) => one.id === id)?.name ?? String(id));
    if (names.length > 0)
      this.#options.log.warn(
        { voters: names },
        'a voter that cannot be reached may know only nodes that have left: when it returns, it needs the signed membership list to rejoin. Remove it if it does not return',
      );
  }

  get #connected(): ReadonlySet<NodeId> {
    const away = new Set(this.#options.transport.unconnected);
    return new Set(this.#membership.members.flatMap(({ id }) => (away.has(id) ? [] : [id])));
  }

  /** Promotes a member: it votes as soon as it has caught up. @throws ClusterError, StoreError */
  async promote(serverId: string): Promise<void> {
    const { id } = this.#requireMember(serverId);
    await this.#options.changes.make((_conf, membership) => promotion(membership, id));
  }

  /**
   * Demotes a member, which then does not vote until it is promoted.
   * @throws ClusterError `invalid_request`; LeadershipTransferred when the member is this node; StoreError
   */
  async demote(serverId: string): Promise<void> {
    const { id } = this.#requireMember(serverId);
    await this.#transferLeadershipIfSelf(id);
    await this.#options.changes.make((conf, membership) => demotion(conf, membership, { id, ...this.#contact() }));
  }

  /** Returns whether the removal of a member is committed. Waits for a removal that is under way: it may be rolled back. */
  async #isRemoved(serverId: string): Promise<boolean> {
    const isNamed = (): boolean => this.#member(serverId) === undefined && wasRemoved(this.#membership, serverId);
    if (!isNamed()) return false;
    await this.#options.changes.make(() => undefined);
    return isNamed();
  }

  /** Transfers leadership first when the leader itself is to lose its vote, so that the cluster is never without a leader. */
  async #transferLeadershipIfSelf(id: NodeId): Promise<void> {
    const { driver } = this.#options;
    const { nodeId, term } = driver.status();
    if (id !== nodeId) return;
    refuseTooFewVoters(driver.consensus().conf, id, this.#contact());
    const outcome = await new Promise<TransferOutcome>((resolve) => driver.transfer(undefined, resolve));
    if (outcome.kind === 'resigned') throw new LeadershipTransferred(term);
    throw new StoreError(
      'busy',
      'this node is the leader, and no other voter took over leadership: check that the other voters are unsealed and up to date, then try again',
    );
  }

  #contact(): VoterContact {
    const { driver } = this.#options;
    const self = driver.status().nodeId;
    const active = new Set([self, ...driver.peers().flatMap((peer) => (peer.active ? [peer.id] : []))]);
    return { self, isActive: (id) => active.has(id) };
  }

  get #membership(): Membership {
    return decodeMembership(this.#options.driver.consensus().conf.context);
  }

  #member(serverId: string): Member | undefined {
    if (serverId === '') throw new ClusterError('invalid_request', 'no server id provided');
    return findMember(this.#membership, serverId);
  }

  #requireMember(serverId: string): Member {
    const member = this.#member(serverId);
    if (member === undefined)
      throw new ClusterError('invalid_request', `no member has the name or the id ${serverId.slice(0, 64)}`);
    return member;
  }
}
