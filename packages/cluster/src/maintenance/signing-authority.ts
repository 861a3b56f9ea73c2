import { X509Certificate } from 'node:crypto';
import type { NodeId } from '@transitd/raft-core';
import { fieldsIn, type Store, StoreError } from '@transitd/storage-fsm';
import {
  authorityPath,
  authorityRecord,
  type ClusterAuthority,
  isPair,
  makeAuthority,
  nextAuthorityPath,
  readAuthority,
  readAuthorityIfReadable,
  signRequest,
} from '../membership/authority.ts';
import { fingerprintOf } from '../membership/certificate.ts';
import type { MembershipList } from '../membership/membership-list.ts';
import { isSameAuthority } from '../membership/rotation-phase.ts';
import type { NodeRole } from '../ports/cluster-host.ts';
import { ClusterError } from '../refusals/cluster-error.ts';
import type { ClusterHandler } from '../transport/cluster-call.ts';

/** The signing authority of the cluster, as the records of this node and the newest committed configuration name it. */
export class SigningAuthority {
  readonly clusterId: string;
  readonly #store: Store;
  readonly #membershipList: Pick<MembershipList, 'committedAuthority' | 'requireIdentity'>;

  /** @param store - store of the decrypted records */
  constructor(store: Store, clusterId: string, membershipList: Pick<MembershipList, 'committedAuthority' | 'requireIdentity'>) {
    this.clusterId = clusterId;
    this.#store = store;
    this.#membershipList = membershipList;
  }

  /** Returns the authority; undefined before it is created. @throws StoreError; Error when its key is missing */
  async read(): Promise<ClusterAuthority | undefined> {
    return this.#membershipList.committedAuthority === undefined ? readAuthority(this.#store) : this.readOrMake();
  }

  /** Returns the authority; creates it if there is none. Only on the active node. @throws as {@link authorityOf} */
  readOrMake(): Promise<ClusterAuthority> {
    return authorityOf(this.#store, this.clusterId, this.#membershipList.committedAuthority);
  }

  /** Writes the record again if it is unreadable. @throws ClusterError, StoreError */
  async keep(authority: ClusterAuthority): Promise<void> {
    const { committedAuthority } = this.#membershipList;
    await keepAuthority(this.#store, committedAuthority ?? this.#membershipList.requireIdentity().authority, authority);
  }
}

export const restorePath = '/cluster/authority';

/** Returns the handler of this call, sent by the node that ran a restore under another root key: only it still has the authority's key. */
export const authorityHandler =
  (role: Pick<NodeRole, 'isActive'>, signing: Pick<SigningAuthority, 'keep'>): ClusterHandler =>
  async ({ body }) => {
    const { key, certificate } = fieldsIn(body);
    if (typeof key !== 'string' || typeof certificate !== 'string') return { status: 400, json: {} };
    if (!role.isActive) throw new StoreError('not_leader', 'this node is not the active one');
    await signing.keep({ key, certificate });
    return { status: 200, json: {} };
  };

/** A certificate that was signed for a node, and the authority that signed it. */
export interface IssuedNodeCertificate {
  readonly authority: ClusterAuthority;
  /** PEM. */
  readonly certificate: string;
  readonly fingerprint: string;
}

/**
 * Certifies the key of a node's request with the signing authority. Only on the active node, which lists the certificate before the node
 * gets it. @throws as {@link authorityOf} and {@link signRequest}
 */
export async function certifyNode(
  signing: Pick<SigningAuthority, 'clusterId' | 'readOrMake'>,
  nodeId: NodeId,
  { request, now }: { readonly request: string; readonly now: Date },
): Promise<IssuedNodeCertificate> {
  const authority = await signing.readOrMake();
  const certificate = await signRequest(authority, { request, now, clusterId: signing.clusterId, nodeId });
  return { authority, certificate, fingerprint: fingerprintOf(new X509Certificate(certificate)) };
}

/**
 * Returns the cluster's signing authority; creates it if the cluster has none yet. Call it only on the active node.
 * @param current - certificate (PEM) of the signing authority that the configuration names; undefined before the first rotation
 * @throws StoreError; Error when the key of the authority is missing
 */
export async function authorityOf(store: Store, clusterId: string, current?: string): Promise<ClusterAuthority> {
  for (;;) {
    const present = await readAuthority(store);
    if (current !== undefined) return signingAuthority(store, present, current);
    if (present !== undefined) return present;
    const made = authorityRecord(await makeAuthority(clusterId, new Date()));
    await store.commit({ conditions: [{ path: authorityPath, revision: 0 }], writes: [made] });
  }
}

async function signingAuthority(store: Store, present: ClusterAuthority | undefined, current: string): Promise<ClusterAuthority> {
  if (present !== undefined && isSameAuthority(present.certificate, current)) return present;
  const next = await readAuthority(store, nextAuthorityPath);
  if (next !== undefined && isSameAuthority(next.certificate, current)) return next;
  throw new Error("the key of the cluster's authority is missing");
}

/**
 * Writes the authority's record again after a restore under another root key made it unreadable.
 * @param known - certificate of the signing authority, PEM: from the configuration, or from this node's identity
 * @throws ClusterError `invalid_request` when it is another authority; StoreError
 */
export async function keepAuthority(store: Store, known: string, authority: ClusterAuthority): Promise<void> {
  if (!isAuthority(authority, known)) throw new ClusterError('invalid_request', 'this is not the authority of this cluster');
  if (typeof (await readAuthorityIfReadable(store)) === 'object') return;
  // The key of an announced authority is unreadable too: the rotation is withdrawn, and the operator starts it again.
  await store.commit({ conditions: [], writes: [authorityRecord(authority), { path: nextAuthorityPath, value: null }] });
}

const isAuthority = (authority: ClusterAuthority, known: string): boolean =>
  isPair(authority) && isSameAuthority(authority.certificate, known);
