import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  BarrierError,
  openJoinSecret,
  requireSealType,
  type SealKeyHolder,
  type SealTerms,
  type SealType,
} from '@transitd/barrier';
import type { NodeId } from '@transitd/raft-core';
import { isPair } from '../membership/authority.ts';
import { fingerprintOf, nameIn } from '../membership/certificate.ts';
import type { NodeIdentity } from '../membership/identity.ts';
import { ClusterError, type ClusterErrorCode } from '../refusals/cluster-error.ts';
import { exchangedBefore, type JoinOpening, joinerProof, leaderProof, sameProof } from './join-exchange.ts';
import {
  decodeOffer,
  decodeRequest,
  decodeWelcome,
  encodeAnswer,
  encodeRequest,
  isLeaderAddress,
  type JoinAnswer,
  type Joiner,
  type JoinOffer,
  type JoinWelcome,
} from './join-messages.ts';

/**
 * Sends a message to a node; resolves with its JSON answer.
 * @throws ClusterError `leader_unavailable`, `leader_refused`, `leader_untrusted`
 */
export type Send = (address: string, path: string, message: object) => Promise<unknown>;

export interface JoinClientOptions {
  readonly joiner: Joiner;
  /** The private key of `joiner.request`, PEM. */
  readonly key: string;
  /** API addresses of members, tried in this order; any member forwards the exchange to the active node. */
  readonly leaders: readonly string[];
  readonly send: Send;
  readonly randomBytes: (count: number) => Buffer;
}

/** The cluster that a node has joined, and its id and identity there. */
export interface JoinedCluster {
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly identity: NodeIdentity;
}

export const challengePath = '/v1/sys/storage/raft/bootstrap/challenge';
export const answerPath = '/v1/sys/storage/raft/bootstrap/answer';

const leadersMax = 16;

/** The joiner's side of a join. A failed join may be repeated with the same node id and key. */
export class JoinClient {
  readonly #options: JoinClientOptions;

  /** @throws ClusterError `join_malformed` when every leader would refuse this node's request, or no valid leader address is given */
  constructor(options: JoinClientOptions) {
    const { joiner, leaders } = options;
    decodeRequest(encodeRequest({ ...joiner, nonce: Buffer.alloc(32) }));
    if (leaders.length === 0 || leaders.length > leadersMax)
      throw new ClusterError('join_malformed', `a join needs 1 to ${leadersMax} addresses of members`);
    if (!leaders.every(isLeaderAddress))
      throw new ClusterError('join_malformed', 'the address of a member must be like https://10.0.0.1:8200');
    this.#options = options;
  }

  /**
   * Asks for the terms of the cluster's seal, for a node that may have to collect shares first. They are without proof so far.
   * @param accepted - the types of seal that this node opens
   * @throws ClusterError `leader_unavailable`, `leader_refused`, `leader_untrusted`, `join_seal`
   */
  prepare(accepted: readonly SealType[] = ['shamir']): Promise<SealTerms> {
    return this.#firstOf(async (leader) => {
      const { terms } = (await this.#requestOffer(leader)).offer;
      requireSealType(accepted, terms);
      return terms;
    });
  }

  /**
   * Runs the whole exchange with a new challenge: the challenge of `prepare` is valid for a minute, and the last share may come later.
   * @param prepared - the terms for which the shares were collected
   * @throws as `prepare`; ClusterError `seal_changed`: shares must be collected again; BarrierError `share_missing`: the shares were wiped
   */
  complete(holder: SealKeyHolder, prepared?: SealTerms): Promise<JoinedCluster> {
    return this.#firstOf(async (leader) => {
      const opening = await this.#requestOffer(leader);
      if (prepared !== undefined && !isDeepStrictEqual(opening.offer.terms, prepared))
        throw new ClusterError(
          'seal_changed',
          'the seal of the cluster has changed since the shares were collected: provide the new shares',
        );
      return this.#answer(leader, opening, holder);
    });
  }

  /** Returns the result of the first leader that succeeds. If none does, the error has the reasons of all. */
  async #firstOf<T>(attempt: (leader: string) => Promise<T>): Promise<T> {
    const failures: ClusterError[] = [];
    for (const leader of this.#options.leaders) {
      try {
        return await attempt(leader);
      } catch (error) {
        const code = codeOf(error);
        if (code === undefined) throw error;
        failures.push(new ClusterError(code, `${leader}: ${(error as Error).message}`, { cause: error }));
      }
    }
    const code = failures.find(({ code }) => code !== 'leader_unavailable')?.code ?? 'leader_unavailable';
    throw new ClusterError(code, `cannot join: ${failures.map(({ message }) => message).join('; ')}`);
  }

  async #requestOffer(leader: string): Promise<JoinOpening> {
    const { joiner, send, randomBytes } = this.#options;
    const request = { ...joiner, nonce: randomBytes(32) };
    return { request, offer: decodeOffer(await send(leader, challengePath, encodeRequest(request))) };
  }

  async #answer(leader: string, opening: JoinOpening, holder: SealKeyHolder): Promise<JoinedCluster> {
    const { request, offer } = opening;
    const { terms, wrapped } = offer;
    const secret = await openJoinSecret(holder, { terms, exchanged: exchangedBefore(request, offer), wrapped });
    try {
      const answer = { challengeId: offer.challengeId, proof: joinerProof(secret, opening) };
      const welcome = decodeWelcome(await this.#send(leader, answer));
      if (!sameProof(welcome.proof, leaderProof(secret, { ...opening, answer, admission: welcome })))
        throw new ClusterError(
          'leader_untrusted',
          'its proof is wrong: it does not hold the seal key, or its messages were changed on the way',
        );
      this.#checkWelcome(offer, welcome);
      const { joiner, key } = this.#options;
      const { certificate, members: membersAtJoin } = welcome;
      const identity = { key, certificate, authority: offer.authority, membersAtJoin };
      return { clusterId: offer.clusterId, nodeId: joiner.id, identity };
    } finally {
      secret.fill(0);
    }
  }

  async #send(leader: string, answer: JoinAnswer): Promise<unknown> {
    try {
      return await this.#options.send(leader, answerPath, encodeAnswer(answer));
    } catch (error) {
      if (!(error instanceof ClusterError && error.code === 'leader_unavailable')) throw error;
      const unknown = 'it may have admitted this node; joining again is safe';
      throw new ClusterError(error.code, `${error.message}; ${unknown}`, { cause: error });
    }
  }

  /** Checks the welcome of a leader that is authenticated but may have made a mistake. */
  #checkWelcome({ clusterId, authority }: JoinOffer, { certificate: pem, members }: JoinWelcome): void {
    const { joiner, key } = this.#options;
    const certificate = readCertificate(pem);
    const name = nameIn(certificate, readCertificate(authority));
    if (name === undefined) throw untrusted('its certificate for this node is not signed by the authority that it named');
    if (name.clusterId !== clusterId || name.nodeId !== joiner.id)
      throw untrusted('its certificate for this node names another node');
    if (!isPair({ key, certificate: pem })) throw untrusted('its certificate for this node is for another key');
    const local = members.find(({ id }) => id === joiner.id);
    if (local?.certificate !== fingerprintOf(certificate))
      throw untrusted('its membership list does not name this node with this certificate');
  }
}

const untrusted = (message: string): ClusterError => new ClusterError('leader_untrusted', message);

function readCertificate(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw untrusted('its certificate is malformed');
  }
}

/** Maps an error in handling the leader's answer to the code that the joiner reports; undefined for an unrelated error. */
function codeOf(error: unknown): ClusterErrorCode | undefined {
  if (error instanceof ClusterError) return error.code === 'join_malformed' ? 'leader_untrusted' : error.code;
  if (!(error instanceof BarrierError)) return undefined;
  if (error.code === 'seal_mismatch' || error.code === 'seal_unavailable') return 'join_seal';
  return error.code === 'join_secret' ? 'leader_untrusted' : undefined;
}
