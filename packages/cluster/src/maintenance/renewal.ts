import { X509Certificate } from 'node:crypto';
import { RequestError } from '@transitd/http';
import type { NodeId } from '@transitd/raft-core';
import { type ClusterAuthority, isPair, makeRequest, RequestRefused, signRequest } from '../membership/authority.ts';
import { fingerprintOf, nameByAny, nameIn, renewalDue } from '../membership/certificate.ts';
import type { NodeIdentity } from '../membership/identity.ts';
import { isSameAuthority } from '../membership/rotation-phase.ts';
import { ClusterCallError, type ClusterClient } from '../transport/cluster-client.ts';
import type { ClusterHandler } from '../transport/cluster-listener.ts';

export const renewPath = '/cluster/renew';

export interface RenewalOptions {
  readonly clusterId: string;
  /** @throws StoreError `not_leader`, `sealed` and the like, where nothing can be signed */
  readonly authority: () => Promise<ClusterAuthority>;
  /** Puts the new certificate into the member list (`certificateSigned`), and resolves when that is committed. @throws StoreError */
  readonly list: (node: NodeId, fingerprint: string, authority: ClusterAuthority) => Promise<void>;
  readonly now: () => Date;
}

/** Answers `POST /cluster/renew {request}` with `{certificate}`, both PEM: signed for whoever asks, and listed before it leaves. */
export function renewalHandler({ clusterId, authority, list, now }: RenewalOptions): ClusterHandler {
  return async ({ from, body }) => {
    const request = requestIn(body);
    try {
      const signing = await authority();
      const certificate = await signRequest(signing, { request, nodeId: from, clusterId, now: now() });
      await list(from, fingerprintOf(new X509Certificate(certificate)), signing);
      return { status: 200, json: { certificate } };
    } catch (error) {
      throw error instanceof RequestRefused ? new RequestError('invalid_request', error.message) : error;
    }
  };
}

function requestIn(body: Buffer): string {
  try {
    const fields: unknown = JSON.parse(body.toString('utf8'));
    if (typeof fields === 'object' && fields !== null && 'request' in fields && typeof fields.request === 'string')
      return fields.request;
  } catch {
    // said below
  }
  throw new RequestError('malformed_body', 'the body has no request');
}

/**
 * Asks the active node to certify a new key, and answers with the identity to be kept from then on; nothing has changed when it throws.
 * @throws ClusterCallError; Error when the answer is a refusal or no certificate for this node and key
 */
export async function renewIdentity(
  client: Pick<ClusterClient, 'post'>,
  {
    identity,
    authorities,
    leader,
    timeoutMs,
  }: {
    readonly identity: NodeIdentity;
    /** Those that this node trusts: the certificate may come from another one than that before it. */
    readonly authorities: readonly X509Certificate[];
    readonly leader: NodeId;
    readonly timeoutMs: number;
  },
): Promise<NodeIdentity> {
  const local = nameIn(new X509Certificate(identity.certificate), new X509Certificate(identity.authority));
  if (local === undefined) throw new Error('this node’s certificate is not one of its cluster');
  const { key, request } = await makeRequest(local.nodeId);
  const { status, json } = await client.post(leader, renewPath, { json: { request }, timeoutMs });
  if (status !== 200) throw new Error(`the certificate was not renewed: status ${status}`);
  const certificate = certificateIn(json);
  const signed = new X509Certificate(certificate);
  const named = nameByAny(signed, authorities);
  const authority = authorities.find((one) => nameIn(signed, one) !== undefined);
  if (
    authority === undefined ||
    named?.nodeId !== local.nodeId ||
    named.clusterId !== local.clusterId ||
    !isPair({ key, certificate })
  ) {
    throw new Error('the renewed certificate is not for this node and its key');
  }
  return { ...identity, key, certificate, authority: authority.toString() };
}

function certificateIn(json: unknown): string {
  if (typeof json === 'object' && json !== null && 'certificate' in json && typeof json.certificate === 'string')
    return json.certificate;
  throw new Error('the certificate was not renewed: the answer has none');
}

/** Whether the authority that signed this node's certificate is another one than that which signs now. @param current - PEM */
export const isOfFormerAuthority = ({ authority }: NodeIdentity, current: string | undefined): boolean =>
  current !== undefined && !isSameAuthority(authority, current);

export interface RenewalParts {
  readonly client: Pick<ClusterClient, 'post'>;
  readonly identity: () => NodeIdentity | undefined;
  readonly authorities: () => readonly X509Certificate[];
  /** The authority that signs, PEM; undefined before the first rotation. */
  readonly authority: () => string | undefined;
  /** The member that leads; undefined while none is known, and where it is this node, which certifies itself. */
  readonly leader: () => NodeId | undefined;
  /** Puts an identity in force, durably. */
  readonly become: (identity: NodeIdentity) => Promise<void>;
  /** UTC. */
  readonly now: () => number;
}

const answerWithinMs = 10_000;
/** The leader lists each certificate that it signs, so a node asks each authority for at most one a minute. A call not sent does not count. */
const againMs = 60_000;

/**
 * A node that has a new key certified in the second half of its certificate's life, or when the authority was rotated. Nothing is lost with an answer: the certificate in
 * force stays good beside the new one until the new one is shown, and the next request takes its place.
 */
export class Renewal {
  readonly #parts: RenewalParts;
  /** The last attempt: when it was made, and the authority that signed then. */
  #tried: { readonly ms: number; readonly authority: string | undefined } | undefined;

  constructor(parts: RenewalParts) {
    this.#parts = parts;
  }

  /** True when another certificate is in force now. @throws as {@link renewIdentity} */
  async renewIfDue(): Promise<boolean> {
    const { client, identity: present, authorities, authority, leader: leading, become, now } = this.#parts;
    const [identity, leader] = [present(), leading()];
    if (identity === undefined || leader === undefined) return false;
    const signing = authority();
    const isDue = renewalDue(new X509Certificate(identity.certificate), now()) || isOfFormerAuthority(identity, signing);
    const tried = this.#tried;
    const isTooSoon = tried !== undefined && tried.authority === signing && Math.abs(now() - tried.ms) < againMs;
    if (!isDue || isTooSoon) return false;
    this.#tried = { ms: now(), authority: signing };
    try {
      await become(await renewIdentity(client, { identity, authorities: authorities(), leader, timeoutMs: answerWithinMs }));
    } catch (error) {
      if (error instanceof ClusterCallError && error.code === 'not_sent') this.#tried = undefined; // nothing was listed
      throw error;
    }
    return true;
  }
}
