import { reasonOf } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { authorityCall, confirmWithinMs, listPath } from './calls.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { AuthorityRotation } from './maintenance/authority-rotation.ts';
import type { Autopilot } from './maintenance/autopilot.ts';
import { authorityOf, keepAuthority, updateMemberEntries, updateOwnEntry } from './maintenance/member-entries.ts';
import type { MemberOperations } from './maintenance/member-operations.ts';
import type { Renewal } from './maintenance/renewal.ts';
import { type ClusterAuthority, readAuthority } from './membership/authority.ts';
import type { ConfigurationChanges } from './membership/configuration-changes.ts';
import type { MembershipListSync } from './membership/list-sync.ts';
import type { Member } from './membership/membership.ts';
import type { MembershipList } from './membership/membership-list.ts';
import { signList } from './membership/signed-list.ts';
import type { ClusterHost, LocalNode } from './ports/cluster-host.ts';
import type { Canary } from './standbys/canary.ts';
import type { Standbys } from './standbys/standbys.ts';
import type { ClusterClient } from './transport/cluster-client.ts';

export interface ClusterMaintenanceParts {
  readonly host: ClusterHost;
  readonly local: LocalNode;
  readonly membershipList: MembershipList;
  readonly standbys: Standbys;
  readonly client: ClusterClient;
  readonly port: ClusterPort;
  readonly changes: ConfigurationChanges;
  readonly autopilot: Autopilot;
  readonly operator: Pick<MemberOperations, 'observe'>;
  readonly canary: Canary;
  readonly rotation: Pick<AuthorityRotation, 'advance'>;
  readonly renewal: Renewal;
  readonly lists: MembershipListSync;
  /** Members to whom this node has no connection for Raft's messages. */
  readonly unconnected: () => readonly NodeId[];
  readonly isRemoved: () => boolean;
  /** The member that is believed to be active; never this node. */
  readonly activeMember: () => Member | undefined;
}

const showWithinMs = 2_500;

/** What a member does from time to time: the active node for the cluster, others for themselves. What fails is left for the next round. */
export class ClusterMaintenance {
  readonly #parts: ClusterMaintenanceParts;
  #underWay = false;
  #selfCare: Promise<void> | undefined;

  constructor(parts: ClusterMaintenanceParts) {
    this.#parts = parts;
  }

  async round(): Promise<void> {
    if (this.#underWay) return;
    const { host, membershipList, standbys, port, changes, autopilot, operator, canary, rotation } = this.#parts;
    void port.openAgain();
    void this.#showList();
    operator.observe();
    if (!host.isActive()) return this.#renew();
    this.#underWay = true;
    try {
      await this.forSelf();
      await updateMemberEntries(changes, (id) => standbys.news(id));
      await this.signList();
      await autopilot.maintenance();
      if (membershipList.members.length > 1) await canary.write(Date.now());
      await rotation.advance();
    } catch (error) {
      host.log.warn({ reason: reasonOf(error) }, 'the care for the members was left for the next round');
    } finally {
      this.#underWay = false;
    }
  }

  /** That this node stands in the member list, with its certificate. One at a time: where there is none yet, two would make one each. */
  forSelf(): Promise<void> {
    this.#selfCare ??= this.#updateOwnEntry().finally(() => {
      this.#selfCare = undefined;
    });
    return this.#selfCare;
  }

  /**
   * Signs the members of the newest committed configuration, where this node is active. Others are told with the answers to their heartbeats.
   * A failure is left for the next round.
   */
  async signList(): Promise<void> {
    const { host, local, membershipList, lists } = this.#parts;
    const { index, members } = membershipList.committed;
    if (!host.isActive() || members.length === 0 || index <= (lists.held?.index ?? 0)) return;
    try {
      const authority = await this.signingAuthority();
      if (authority !== undefined)
        await lists.signed(signList(authority, { clusterId: local.clusterId, index, members }), local.nodeId);
    } catch (error) {
      host.log.warn({ reason: reasonOf(error) }, 'the membership list is not signed yet');
    }
  }

  /** The authority that signs; undefined while there is none. @throws StoreError */
  async signingAuthority(): Promise<ClusterAuthority | undefined> {
    const { local, membershipList } = this.#parts;
    const { committedAuthority } = membershipList;
    if (committedAuthority === undefined) return readAuthority(local.barrier.store);
    return authorityOf(local.barrier.store, local.clusterId, committedAuthority);
  }

  /** Shows the membership list to members that this node does not reach: one that was away may not admit it until it has seen that. */
  async #showList(): Promise<void> {
    const { lists, unconnected, isRemoved, client, host } = this.#parts;
    const { held } = lists;
    if (held === undefined || isRemoved()) return;
    await Promise.all(
      unconnected().map(async (id) => {
        const answer = await client.post(id, listPath, { json: held.signed, timeoutMs: showWithinMs }).catch(() => undefined);
        if (answer?.status === 200 && isTaken(answer.json))
          host.log.info({ peer: id, index: held.index }, 'a member that did not admit this node has taken its membership list');
      }),
    );
  }

  async keepAuthority(authority: ClusterAuthority): Promise<void> {
    const { local, membershipList } = this.#parts;
    const known = membershipList.committedAuthority ?? membershipList.requireIdentity().authority;
    await keepAuthority(local.barrier.store, known, authority);
  }

  /** The active node shall write the authority again, this one or another. @throws ClusterCallError, StoreError */
  async restoreAuthority(authority: ClusterAuthority): Promise<void> {
    if (this.#parts.host.isActive()) return this.keepAuthority(authority);
    const active = this.#parts.activeMember();
    if (active === undefined) throw new StoreError('not_leader', 'no active node is known');
    const { status } = await this.#parts.client.post(active.id, authorityCall, { json: authority, timeoutMs: confirmWithinMs });
    if (status !== 200) throw new StoreError('not_leader', `the active node did not take the authority: status ${status}`);
  }

  #updateOwnEntry(): Promise<void> {
    const { host, local, membershipList, port, changes } = this.#parts;
    const { config, apiAddress } = host;
    return updateOwnEntry({
      store: local.barrier.store,
      changes,
      clusterId: local.clusterId,
      nodeId: local.nodeId,
      current: () => membershipList.committedAuthority,
      self: () => ({
        name: config.node_id,
        apiAddress: apiAddress(),
        clusterAddress: config.cluster_addr ?? '',
        nonVoter: config.non_voter,
      }),
      identity: () => membershipList.identity,
      become: (identity) => port.show(identity),
    });
  }

  async #renew(): Promise<void> {
    const { host, renewal, isRemoved } = this.#parts;
    if (isRemoved()) return;
    try {
      if (await renewal.renewIfDue()) host.log.info('the certificate of this node was renewed');
    } catch (error) {
      host.log.warn({ reason: reasonOf(error) }, 'the certificate of this node is not renewed yet');
    }
  }
}

/** Whether the list was news there: a member that knows it already says so at each attempt. */
const isTaken = (json: unknown): boolean =>
  typeof json === 'object' && json !== null && 'verdict' in json && json.verdict === 'take';
