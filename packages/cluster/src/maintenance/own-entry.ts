import { X509Certificate } from 'node:crypto';
import { sharedRun } from '@transitd/event-loop';
import type { NodeId } from '@transitd/raft-core';
import { supportedLevels } from '@transitd/storage-fsm';
import { makeRequest } from '../membership/authority.ts';
import { fingerprintOf } from '../membership/certificate.ts';
import type { ConfigurationChanges } from '../membership/configuration-changes.ts';
import type { NodeIdentity } from '../membership/identity.ts';
import { certificateShown } from '../membership/membership.ts';
import type { MembershipList } from '../membership/membership-list.ts';
import type { ClusterHost } from '../ports/cluster-host.ts';
import { changed, listCertificate, withMember } from './member-entries.ts';
import { type IdentityUser, isRenewalDue } from './renewal.ts';
import { certifyNode, type SigningAuthority } from './signing-authority.ts';

interface OwnEntryOptions {
  readonly host: Pick<ClusterHost, 'config' | 'log' | 'api'>;
  readonly nodeId: NodeId;
  readonly changes: Pick<ConfigurationChanges, 'make'>;
  readonly authority: Pick<SigningAuthority, 'clusterId' | 'readOrMake'>;
  readonly membershipList: Pick<MembershipList, 'identity' | 'committedAuthority'>;
  readonly port: IdentityUser;
}

/** The active node's own membership entry: its certificate from the signing authority, its name and its addresses. */
export class OwnEntry {
  readonly #options: OwnEntryOptions;
  /** The other member with this node's configured name that was logged last; 0 for none. */
  #namesake: NodeId = 0;

  constructor(options: OwnEntryOptions) {
    this.#options = options;
  }

  /**
   * Updates the entry and the certificate. Only one update runs at a time: two would each make a certificate. If another member has this
   * node's new name, this node keeps its former one.
   * @throws StoreError
   */
  readonly update = sharedRun(() => this.#update());

  async #update(): Promise<void> {
    const { host, nodeId, changes, membershipList } = this.#options;
    const { config, api, log } = host;
    const { identity, committedAuthority } = membershipList;
    const isDue = identity === undefined || isRenewalDue(identity, committedAuthority, Date.now());
    const { certificate } = isDue ? await this.#certify(identity) : identity;
    const fingerprint = fingerprintOf(new X509Certificate(certificate));
    let namesake: NodeId = 0;
    await changes.make((_conf, membership) => {
      const present = membership.members.find(({ id }) => id === nodeId);
      const name = config.node_id;
      const rest = { apiAddress: api.url, clusterAddress: config.cluster_addr ?? '', levels: supportedLevels };
      // Only a sole member may start under another name. A node may have joined under that name since.
      namesake = membership.members.find((one) => one.id !== nodeId && one.name === name)?.id ?? 0;
      const wanted =
        present === undefined
          ? { id: nodeId, certificate: fingerprint, nonVoter: config.non_voter, name, ...rest }
          : { ...present, ...rest, name: namesake === 0 ? name : present.name };
      return changed(membership, certificateShown(withMember(membership, wanted), nodeId, fingerprint));
    });
    if (namesake !== 0 && namesake !== this.#namesake)
      log.error(
        { name: config.node_id, namesake },
        'another member has the node_id of this node, which keeps its former name: set node_id back, or remove that member by its id',
      );
    this.#namesake = namesake;
  }

  /** Gives this node a certificate of the signing authority for a new key, and puts it in force. */
  async #certify(former: NodeIdentity | undefined): Promise<NodeIdentity> {
    const { nodeId, changes, authority, port } = this.#options;
    const { key, request } = await makeRequest(nodeId);
    const issued = await certifyNode(authority, nodeId, { request, now: new Date() });
    await listCertificate(changes, nodeId, issued);
    const { certificate } = issued;
    const identity = { membersAtJoin: [], ...former, authority: issued.authority.certificate, key, certificate };
    await port.useIdentity(identity);
    return identity;
  }
}
