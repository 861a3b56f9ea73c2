import { X509Certificate } from 'node:crypto';
import { admission, type Bucket, type Rate } from '@transitd/access';
import type { Clock } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { jsonIn, StoreError } from '@transitd/storage-fsm';
import { z } from 'zod';
import { isPair, makeRequest } from '../membership/authority.ts';
import { nameByAny, nameIn, renewalDue } from '../membership/certificate.ts';
import type { ConfigurationChanges } from '../membership/configuration-changes.ts';
import { type NodeIdentity, nameOf } from '../membership/identity.ts';
import type { MembershipList } from '../membership/membership-list.ts';
import { isSameAuthority } from '../membership/rotation-phase.ts';
import type { NodeRole } from '../ports/cluster-host.ts';
import { ClusterError } from '../refusals/cluster-error.ts';
import type { ClusterHandler } from '../transport/cluster-call.ts';
import { ClusterCallError, type ClusterClient } from '../transport/cluster-client.ts';
import { listCertificate } from './member-entries.ts';
import { certifyNode, type SigningAuthority } from './signing-authority.ts';

export const renewPath = '/cluster/renew';

/** How often a node may ask: each request costs a signature and an entry of the log. A node renews once in months, and retries. */
const renewalRate: Rate = { rate: 5, intervalS: 50, blockIntervalS: 0 };
/** A certificate request in PEM has some 500 characters. */
const renewalRequest = z.object({ request: z.string().max(4096) });
const renewalAnswer = z.object({ certificate: z.string() });

/**
 * Answers `POST /cluster/renew {request}` with `{certificate}`, both PEM. The certificate is for the caller, and the membership lists it
 * before it is sent. A node may ask five times at once, then once in ten seconds.
 */
export function renewalHandler({
  role,
  authority,
  changes,
  clock,
}: {
  readonly role: Pick<NodeRole, 'isActive'>;
  readonly authority: Pick<SigningAuthority, 'clusterId' | 'readOrMake'>;
  readonly changes: Pick<ConfigurationChanges, 'make'>;
  readonly clock: Clock;
}): ClusterHandler {
  const buckets = new Map<NodeId, Bucket>();
  return async ({ from, body }) => {
    const { bucket, admitted } = admission(buckets.get(from), renewalRate, clock.nowMs());
    buckets.set(from, bucket);
    if (!admitted) return { status: 429, json: { errors: ['this node renews its certificate too often: try again in 10 s'] } };
    const read = renewalRequest.safeParse(jsonIn(body));
    if (!read.success) throw new ClusterError('request_refused', 'the body has no certificate request');
    if (!role.isActive) throw new StoreError('not_leader', 'this node is not the active one');
    const issued = await certifyNode(authority, from, { request: read.data.request, now: new Date(clock.utcMs()) });
    await listCertificate(changes, from, issued);
    return { status: 200, json: { certificate: issued.certificate } };
  };
}

/**
 * Asks the active node to certify a new key; returns the new identity. Nothing has changed when it throws.
 * @throws ClusterCallError; Error when the answer is a refusal, or not a certificate for this node and key
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
    /** The trusted authorities: the one that signs may have changed since the last certificate. */
    readonly authorities: readonly X509Certificate[];
    readonly leader: NodeId;
    readonly timeoutMs: number;
  },
): Promise<NodeIdentity> {
  const local = nameOf(identity);
  const { key, request } = await makeRequest(local.nodeId);
  const { status, json } = await client.post(leader, renewPath, { json: { request }, timeoutMs });
  if (status !== 200) throw new Error(`the certificate was not renewed: the active node answered with status ${status}`);
  const answer = renewalAnswer.safeParse(json);
  if (!answer.success) throw new Error("the certificate was not renewed: the active node's answer has none");
  const { certificate } = answer.data;
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

/** Whether half of a certificate's validity has passed, or a former authority signed it. @param current - the signing authority, PEM */
export const isRenewalDue = ({ certificate, authority }: NodeIdentity, current: string | undefined, nowMs: number): boolean =>
  renewalDue(new X509Certificate(certificate), nowMs) || (current !== undefined && !isSameAuthority(authority, current));

/** Puts a new identity of this node in force. */
export interface IdentityUser {
  /** Stores the identity, and uses it from the next connection on. @throws errors of the file system; StartError */
  useIdentity(identity: NodeIdentity): Promise<void>;
}

interface RenewalOptions {
  readonly client: Pick<ClusterClient, 'post'>;
  readonly membershipList: Pick<MembershipList, 'identity' | 'authorities' | 'committedAuthority'>;
  /** The leader itself certifies itself. */
  readonly leader: { readonly present: { readonly id: NodeId } | undefined };
  readonly port: IdentityUser;
  readonly clock: Pick<Clock, 'utcMs'>;
}

const answerWithinMs = 10_000;
/**
 * Minimum time between two requests to the same authority, because the leader lists each certificate that it signs. A request that was not
 * sent does not count.
 */
const retryMs = 60_000;

interface Attempt {
  readonly ms: number;
  readonly authority?: string | undefined;
}

const noAttempt: Attempt = { ms: Number.NEGATIVE_INFINITY };

/**
 * Renews this node's certificate, for a new key, in the second half of its validity and after a rotation of the authority. A lost answer
 * does no harm: the present certificate stays valid until the new one is used, and the next renewal replaces the unused certificate.
 */
export class Renewal {
  readonly #options: RenewalOptions;
  /** Time of the last attempt, and the authority that signed then. */
  #tried: Attempt = noAttempt;

  constructor(options: RenewalOptions) {
    this.#options = options;
  }

  /** Renews the certificate if due; returns whether it was replaced. @throws as {@link renewIdentity} */
  async renewIfDue(): Promise<boolean> {
    const { client, membershipList, leader, port, clock } = this.#options;
    const [{ identity }, present, nowMs] = [membershipList, leader.present, clock.utcMs()];
    if (identity === undefined || present === undefined) return false;
    const signing = membershipList.committedAuthority;
    const isTooSoon = this.#tried.authority === signing && Math.abs(nowMs - this.#tried.ms) < retryMs;
    if (!isRenewalDue(identity, signing, nowMs) || isTooSoon) return false;
    this.#tried = { ms: nowMs, authority: signing };
    const { authorities } = membershipList;
    try {
      await port.useIdentity(
        await renewIdentity(client, { identity, authorities, leader: present.id, timeoutMs: answerWithinMs }),
      );
    } catch (error) {
      if (error instanceof ClusterCallError && error.code === 'not_sent') this.#tried = noAttempt; // no certificate was listed
      throw error;
    }
    return true;
  }
}
