import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { BarrierError, openJoinSecret, requireSealType, type SealKeyHolder, type SealTerms } from '@transitd/barrier';
import { isPair } from '../membership/authority.ts';
import { fingerprintOf, nameIn } from '../membership/certificate.ts';
import type { NodeIdentity } from '../membership/identity.ts';
import { JoinError, type JoinErrorCode } from '../refusals/join-error.ts';
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

/** Brings a message to a node and its answer, JSON, back. @throws JoinError `leader_unavailable`, `leader_refused`, `leader_untrusted` */
export type Send = (address: string, path: string, message: object) => Promise<unknown>;

export interface JoinClientOptions {
  readonly joiner: Joiner;
  /** The private key of `joiner.request`, PEM. */
  readonly key: string;
  /** The cluster that this node belongs to or has been told of, when it knows one: no other is joined. */
  readonly clusterId?: string;
  /** API addresses of members, tried in this order; any member passes the exchange on to the active node. */
  readonly leaders: readonly string[];
  readonly send: Send;
  readonly randomBytes: (count: number) => Buffer;
}

/** What a leader says about its cluster. Nothing of it is proven yet. */
export interface Prospect {
  readonly clusterId: string;
  readonly terms: SealTerms;
}

/** What the node is now: a member. */
export interface Joined extends NodeIdentity {
  readonly clusterId: string;
}

export const challengePath = '/v1/sys/storage/raft/bootstrap/challenge';
export const answerPath = '/v1/sys/storage/raft/bootstrap/answer';

const leadersMax = 16;

/** The joiner's side of a join. After a failure it may be tried again, with the same node id and key. */
export class JoinClient {
  readonly #options: JoinClientOptions;

  /** @throws JoinError `join_malformed` when what this node would say of itself is refused by every leader, or no leader is named */
  constructor(options: JoinClientOptions) {
    const { joiner, leaders } = options;
    decodeRequest(encodeRequest({ ...joiner, nonce: Buffer.alloc(32) }));
    if (leaders.length === 0 || leaders.length > leadersMax)
      throw new JoinError('join_malformed', `a join needs 1 to ${leadersMax} addresses of members`);
    if (!leaders.every(isLeaderAddress))
      throw new JoinError('join_malformed', 'the address of a member is one such as https://10.0.0.1:8200');
    this.#options = options;
  }

  /**
   * Asks what shares the cluster's seal takes, for a node that has to gather them first.
   * @throws JoinError `leader_unavailable`, `leader_refused`, `leader_untrusted`, `foreign_cluster`, `join_seal`
   */
  prepare(): Promise<Prospect> {
    return this.#firstOf(async (leader) => {
      const { clusterId, terms } = (await this.#ask(leader)).offer;
      requireSealType('shamir', terms);
      return { clusterId, terms };
    });
  }

  /**
   * The whole exchange, beginning with a challenge of its own: between `prepare` and the last share more than a minute may have passed.
   * @param prepared - the terms that the shares were gathered by
   * @throws as `prepare`; JoinError `seal_changed`: shares have to be gathered anew; BarrierError `share_missing`: they were wiped meanwhile
   */
  complete(holder: SealKeyHolder, prepared?: SealTerms): Promise<Joined> {
    return this.#firstOf(async (leader) => {
      const opening = await this.#ask(leader);
      if (prepared !== undefined && !isDeepStrictEqual(opening.offer.terms, prepared))
        throw new JoinError('seal_changed', 'the seal of the cluster is not the one that the shares were gathered for');
      return this.#answer(leader, opening, holder);
    });
  }

  /** What the first leader gives that gives anything; else every one's reason. */
  async #firstOf<T>(attempt: (leader: string) => Promise<T>): Promise<T> {
    const failures: JoinError[] = [];
    for (const leader of this.#options.leaders) {
      try {
        return await attempt(leader);
      } catch (error) {
        const code = codeOf(error);
        if (code === undefined) throw error;
        failures.push(new JoinError(code, `${leader}: ${(error as Error).message}`, { cause: error }));
      }
    }
    const telling = failures.find(({ code }) => code !== 'leader_unavailable')?.code ?? 'leader_unavailable';
    throw new JoinError(telling, `no join: ${failures.map(({ message }) => message).join('; ')}`);
  }

  async #ask(leader: string): Promise<JoinOpening> {
    const { joiner, send, randomBytes, clusterId } = this.#options;
    const request = { ...joiner, nonce: randomBytes(32) };
    const offer = decodeOffer(await send(leader, challengePath, encodeRequest(request)));
    if (clusterId !== undefined && offer.clusterId !== clusterId)
      throw new JoinError('foreign_cluster', `it belongs to the cluster ${offer.clusterId}, this node to ${clusterId}`);
    return { request, offer };
  }

  async #answer(leader: string, opening: JoinOpening, holder: SealKeyHolder): Promise<Joined> {
    const { request, offer } = opening;
    const { terms, wrapped } = offer;
    const secret = await openJoinSecret(holder, { terms, exchanged: exchangedBefore(request, offer), wrapped });
    try {
      const answer = { challengeId: offer.challengeId, proof: joinerProof(secret, opening) };
      const welcome = decodeWelcome(await this.#send(leader, answer));
      if (!sameProof(welcome.proof, leaderProof(secret, { ...opening, answer, admission: welcome })))
        throw new JoinError(
          'leader_untrusted',
          'its proof is wrong: it does not hold the seal key, or what it sent has been changed on the way',
        );
      this.#checkWelcome(offer, welcome);
      const { clusterId, authority } = offer;
      return { clusterId, authority, key: this.#options.key, certificate: welcome.certificate, seeds: welcome.members };
    } finally {
      secret.fill(0);
    }
  }

  async #send(leader: string, answer: JoinAnswer): Promise<unknown> {
    try {
      return await this.#options.send(leader, answerPath, encodeAnswer(answer));
    } catch (error) {
      if (!(error instanceof JoinError && error.code === 'leader_unavailable')) throw error;
      const unknown = 'whether it has admitted this node is unknown, and to join again is safe';
      throw new JoinError(error.code, `${error.message}; ${unknown}`, { cause: error });
    }
  }

  /** The leader is who it says; that it made no mistake is another question. */
  #checkWelcome({ clusterId, authority }: JoinOffer, { certificate: pem, members }: JoinWelcome): void {
    const { joiner, key } = this.#options;
    const certificate = readCertificate(pem);
    const name = nameIn(certificate, readCertificate(authority));
    if (name === undefined) throw untrusted('the certificate that it gave is not one of the authority that it named');
    if (name.clusterId !== clusterId || name.nodeId !== joiner.id)
      throw untrusted('the certificate that it gave names another node');
    if (!isPair({ key, certificate: pem })) throw untrusted('the certificate that it gave is for another key');
    const local = members.find(({ id }) => id === joiner.id);
    if (local?.certificate !== fingerprintOf(certificate))
      throw untrusted('its list of members does not name this node with that certificate');
  }
}

const untrusted = (message: string): JoinError => new JoinError('leader_untrusted', message);

function readCertificate(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw untrusted('what it gave as a certificate is none');
  }
}

/** What it means for the joiner that something does not fit; undefined for what is no fault of a leader. */
function codeOf(error: unknown): JoinErrorCode | undefined {
  if (error instanceof JoinError) return error.code === 'join_malformed' ? 'leader_untrusted' : error.code;
  if (!(error instanceof BarrierError)) return undefined;
  if (error.code === 'seal_mismatch') return 'join_seal';
  return error.code === 'join_secret' ? 'leader_untrusted' : undefined;
}
