import { reasonOf } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { fieldsIn } from '@transitd/storage-fsm';
import type { SigningAuthority } from './maintenance/signing-authority.ts';
import type { MembershipListSync } from './membership/membership-list-sync.ts';
import { ListRefused, signList } from './membership/signed-list.ts';
import type { ClusterHost, NodeRole } from './ports/cluster-host.ts';
import type { Storage } from './ports/storage-port.ts';
import type { RaftConnections } from './raft-connections.ts';
import type { ClusterHandler } from './transport/cluster-call.ts';

/** Path of the call that sends a signed membership list to a node that does not admit the caller. */
export const listPath = '/cluster/members';

const sendListWithinMs = 2_500;

/**
 * Returns the handler of this call. It is sent by a node that this node does not admit, perhaps because this node was away while the
 * members were replaced.
 */
export const listHandler =
  (driver: Pick<Storage['driver'], 'status'>, lists: Pick<MembershipListSync, 'receive'>): ClusterHandler =>
  async ({ from, certificate, body }) => {
    // A node that hears a leader learns of its members from that one.
    if (driver.status().leader !== 0) return { status: 409, json: {} };
    try {
      const verdict = await lists.receive(fieldsIn(body), { id: from, certificate });
      return { status: verdict === 'take' || verdict === 'known' ? 200 : 403, json: { verdict } };
    } catch (error) {
      if (error instanceof ListRefused) return { status: 400, json: {} };
      throw error;
    }
  };

interface ListDeliveryOptions {
  readonly host: Pick<ClusterHost, 'log'>;
  readonly role: Pick<NodeRole, 'isActive'>;
  readonly nodeId: NodeId;
  readonly connections: RaftConnections;
  readonly lists: MembershipListSync;
  readonly authority: SigningAuthority;
}

/** Signs the membership list of the newest committed configuration, and sends it to members that may not know it. */
export class ListDelivery {
  readonly #options: ListDeliveryOptions;

  constructor(options: ListDeliveryOptions) {
    this.#options = options;
  }

  /**
   * Signs the list, if this node is active. Standbys get the list in the answers to their heartbeats. A failure is logged, and the next
   * round of maintenance retries.
   */
  async sign(): Promise<void> {
    const { host, role, nodeId, connections, lists, authority } = this.#options;
    const { index, members } = connections.membershipList.committed;
    if (!role.isActive || members.length === 0 || index <= (lists.newest?.index ?? 0)) return;
    try {
      const signing = await authority.read();
      if (signing !== undefined)
        await lists.storeSigned(signList(signing, { clusterId: authority.clusterId, index, members }), nodeId);
    } catch (error) {
      host.log.warn({ reason: reasonOf(error) }, 'could not sign the membership list; retrying in the next round');
    }
  }

  /**
   * Sends the list to members that this node is not connected to. A member that was away may admit this node only after it has the list.
   */
  async send(): Promise<void> {
    const { host, connections, lists } = this.#options;
    const { membershipList, peers, removed } = connections;
    const { newest } = lists;
    if (newest === undefined || removed) return;
    await Promise.all(
      peers.transport.unconnected.map(async (id) => {
        const answer = await peers.client
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
}

/** Whether the member accepted the list as new. A member that already has the list answers `known` at each attempt. */
const isAccepted = (json: unknown): boolean =>
  typeof json === 'object' && json !== null && 'verdict' in json && json.verdict === 'take';
