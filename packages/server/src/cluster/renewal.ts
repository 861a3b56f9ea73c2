import { X509Certificate } from 'node:crypto';
import type { NodeId } from '@transitd/raft-core';
import { isPair, makeRequest } from './authority.ts';
import { nameIn, renewalDue } from './certificate.ts';
import type { ClusterClient } from './cluster-client.ts';
import type { NodeIdentity } from './identity.ts';

export interface RenewalParts {
  readonly client: Pick<ClusterClient, 'post'>;
  readonly nodeId: NodeId;
  readonly clusterId: string;
  readonly identity: () => NodeIdentity | undefined;
  /** The member that leads; undefined while none is known, and where it is this node, which certifies itself. */
  readonly leader: () => NodeId | undefined;
  /** Puts an identity in force, durably. */
  readonly become: (identity: NodeIdentity) => Promise<void>;
  /** UTC. */
  readonly now: () => number;
}

const answerWithinMs = 10_000;
/** The leader lists each certificate that it signs: no more of them than one a minute. */
const againMs = 60_000;

/**
 * The asking side of a renewal: in the second half of its certificate's life a node has a new key certified. Nothing is lost with an
 * answer: the certificate in force stays good beside the new one until the new one is shown, and the next request takes its place.
 */
export class Renewal {
  readonly #parts: RenewalParts;
  #triedMs = Number.NEGATIVE_INFINITY;

  constructor(parts: RenewalParts) {
    this.#parts = parts;
  }

  /** True when another certificate is in force now. @throws ClusterCallError, Error when the answer is no certificate for the request */
  async renewIfDue(): Promise<boolean> {
    const { client, nodeId, identity: present, leader, become, now } = this.#parts;
    const identity = present();
    const to = leader();
    if (identity === undefined || to === undefined || !renewalDue(new X509Certificate(identity.certificate), now())) return false;
    if (Math.abs(now() - this.#triedMs) < againMs) return false;
    this.#triedMs = now();
    const { key, request } = await makeRequest(nodeId);
    const { status, json } = await client.post(to, '/cluster/renew', { json: { request }, timeoutMs: answerWithinMs });
    const certificate = certificateIn(json);
    if (status !== 200 || certificate === undefined)
      throw new Error(`node ${to} answered the request for a certificate with status ${status}`);
    if (!this.#isFor({ key, certificate, authority: identity.authority }))
      throw new Error(`node ${to} answered with a certificate that is none for the request`);
    await become({ ...identity, key, certificate });
    return true;
  }

  #isFor({ key, certificate, authority }: Pick<NodeIdentity, 'key' | 'certificate' | 'authority'>): boolean {
    const { nodeId, clusterId } = this.#parts;
    try {
      const name = nameIn(new X509Certificate(certificate), new X509Certificate(authority));
      return name?.nodeId === nodeId && name.clusterId === clusterId && isPair({ key, certificate });
    } catch {
      return false; // no certificate at all
    }
  }
}

const certificateIn = (json: unknown): string | undefined =>
  typeof json === 'object' && json !== null && 'certificate' in json && typeof json.certificate === 'string'
    ? json.certificate
    : undefined;
