import { reasonOf } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { acceptsWrites, StoreError, supportedLevels } from '@transitd/storage-fsm';
import { authorityCall, listPath } from './calls.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { AuthorityRotation } from './maintenance/authority-rotation.ts';
import type { Autopilot } from './maintenance/autopilot.ts';
import { authorityOf, keepAuthority, updateMemberEntries, updateOwnEntry } from './maintenance/member-entries.ts';
import type { MemberOperations } from './maintenance/member-operations.ts';
import type { Renewal } from './maintenance/renewal.ts';
import { type ClusterAuthority, readAuthority } from './membership/authority.ts';
import type { ConfigurationChanges } from './membership/configuration-changes.ts';
import type { Member } from './membership/membership.ts';
import type { MembershipList } from './membership/membership-list.ts';
import type { MembershipListSync } from './membership/membership-list-sync.ts';
import { signList } from './membership/signed-list.ts';
import { confirmWithinMs } from './node-calls.ts';
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
  /** Members that this node has no Raft connection to. */
  readonly unconnected: () => readonly NodeId[];
  readonly isRemoved: () => boolean;
  /** Returns the other node that this node believes to be active; undefined if none is known or this node itself is active. */
  readonly activeMember: () => Member | undefined;
}

const sendListWithinMs = 2_500;

/**
 * The periodic work of a member. The active node works for the whole cluster, every other node for itself. A failed task is retried in the
 * next round.
 */
export class ClusterMaintenance {
  readonly #parts: ClusterMaintenanceParts;
  #isRunning = false;
  #ownEntryUpdate: Promise<void> | undefined;
  /** The other member with this node's configured name that was logged last. */
  #namesake: NodeId | undefined;

  constructor(parts: ClusterMaintenanceParts) {
    this.#parts = parts;
  }

  async round(): Promise<void> {
    if (this.#isRunning) return;
    const { host, standbys, port, changes, autopilot, operator, canary, rotation } = this.#parts;
    void port.retryOpen();
    void this.#sendList();
    operator.observe();
    void canary.refresh(); // it may have arrived while this node was sealed
    if (!host.isActive()) return this.#renew();
    this.#isRunning = true;
    try {
      await this.updateOwnEntry();
      await updateMemberEntries(changes, (id) => standbys.report(id));
      await this.signList();
      await autopilot.maintenance();
      if (this.#writesCanary) await canary.write(Date.now());
      await rotation.advance();
    } catch (error) {
      host.log.warn({ reason: reasonOf(error) }, 'maintenance of the members failed; retrying in the next round');
    } finally {
      this.#isRunning = false;
    }
  }

  /** Whether another node or cluster reads the canary of this one. A secondary has its primary's. */
  get #writesCanary(): boolean {
    const { local, membershipList } = this.#parts;
    const { replication } = local.storage.machine;
    return replication?.role === 'primary' || (acceptsWrites(replication) && membershipList.members.length > 1);
  }

  /** Updates this node's membership entry and certificate. Only one update runs at a time: two would each make a certificate. */
  updateOwnEntry(): Promise<void> {
    this.#ownEntryUpdate ??= this.#runOwnEntryUpdate().finally(() => {
      this.#ownEntryUpdate = undefined;
    });
    return this.#ownEntryUpdate;
  }

  /**
   * Signs the membership list of the newest committed configuration, if this node is active. Standbys get the list in the answers to their
   * heartbeats. A failure is logged, and the next round retries.
   */
  async signList(): Promise<void> {
    const { host, local, membershipList, lists } = this.#parts;
    const { index, members } = membershipList.committed;
    if (!host.isActive() || members.length === 0 || index <= (lists.newest?.index ?? 0)) return;
    try {
      const authority = await this.signingAuthority();
      if (authority !== undefined)
        await lists.storeSigned(signList(authority, { clusterId: local.clusterId, index, members }), local.nodeId);
    } catch (error) {
      host.log.warn({ reason: reasonOf(error) }, 'could not sign the membership list; retrying in the next round');
    }
  }

  /** Returns the signing authority; undefined before it is created. @throws StoreError */
  async signingAuthority(): Promise<ClusterAuthority | undefined> {
    const { local, membershipList } = this.#parts;
    const { committedAuthority } = membershipList;
    if (committedAuthority === undefined) return readAuthority(local.barrier.store);
    return authorityOf(local.barrier.store, local.clusterId, committedAuthority);
  }

  /**
   * Sends the membership list to members that this node is not connected to. A member that was away may admit this node only after it has
   * the list.
   */
  async #sendList(): Promise<void> {
    const { lists, membershipList, unconnected, isRemoved, client, host } = this.#parts;
    const { newest } = lists;
    if (newest === undefined || isRemoved()) return;
    await Promise.all(
      unconnected().map(async (id) => {
        const answer = await client
          .post(id, listPath, { json: newest.signed, timeoutMs: sendListWithinMs })
          .catch(() => undefined);
        if (answer?.status === 200 && isAccepted(answer.json))
          host.log.info(
            { peer: id, name: membershipList.member(id)?.name, index: newest.index },
            'a member that did not admit this node has accepted the membership list that this node sent',
          );
      }),
    );
  }

  /** Writes the authority's record again if it is unreadable. @throws ClusterError, StoreError */
  async keepAuthority(authority: ClusterAuthority): Promise<void> {
    const { local, membershipList } = this.#parts;
    const known = membershipList.committedAuthority ?? membershipList.requireIdentity().authority;
    await keepAuthority(local.barrier.store, known, authority);
  }

  /** Makes the active node, which may be this node, write the authority's record again. @throws ClusterCallError, StoreError */
  async restoreAuthority(authority: ClusterAuthority): Promise<void> {
    if (this.#parts.host.isActive()) return this.keepAuthority(authority);
    const active = this.#parts.activeMember();
    if (active === undefined) throw new StoreError('not_leader', 'no active node is known');
    const { status } = await this.#parts.client.post(active.id, authorityCall, { json: authority, timeoutMs: confirmWithinMs });
    if (status !== 200) throw new StoreError('not_leader', `the active node did not accept the authority: status ${status}`);
  }

  async #runOwnEntryUpdate(): Promise<void> {
    const { host, local, membershipList, port, changes } = this.#parts;
    const { config, apiAddress } = host;
    const namesake = await updateOwnEntry({
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
        levels: supportedLevels,
      }),
      identity: () => membershipList.identity,
      setIdentity: (identity) => port.useIdentity(identity),
    });
    if (namesake !== undefined && namesake.id !== this.#namesake)
      host.log.error(
        { name: config.node_id, namesake: namesake.id },
        'another member has the node_id of this node, which keeps its former name: set node_id back, or remove that member by its id',
      );
    this.#namesake = namesake?.id;
  }

  async #renew(): Promise<void> {
    const { host, renewal, isRemoved } = this.#parts;
    if (isRemoved()) return;
    try {
      if (await renewal.renewIfDue()) host.log.info('renewed the certificate of this node');
    } catch (error) {
      host.log.warn({ reason: reasonOf(error) }, 'could not renew the certificate of this node; retrying');
    }
  }
}

/** Whether the member accepted the list as new. A member that already has the list answers `known` at each attempt. */
const isAccepted = (json: unknown): boolean =>
  typeof json === 'object' && json !== null && 'verdict' in json && json.verdict === 'take';
