import { randomBytes } from 'node:crypto';
import type { Barrier } from '@transitd/barrier';
import { type Clock, callerGroup } from '@transitd/process';
import type { SigningAuthority } from '../maintenance/signing-authority.ts';
import { ClusterError } from '../refusals/cluster-error.ts';
import type { Admissions } from './admission.ts';
import { exchangedBefore, type JoinOpening, joinerProof, leaderProof, sameProof } from './join-exchange.ts';
import { decodeAnswer, decodeRequest, encodeOffer, encodeWelcome } from './join-messages.ts';

export interface JoinDeskOptions {
  readonly barrier: Pick<Barrier, 'wrapForJoin'>;
  readonly authority: Pick<SigningAuthority, 'clusterId' | 'readOrMake'>;
  readonly admissions: Pick<Admissions, 'admit'>;
  readonly clock: Pick<Clock, 'nowMs'>;
}

interface OpenChallenge extends JoinOpening {
  readonly secret: Buffer;
  readonly source: string;
  readonly openedMs: number;
}

type Ending = 'challenge_used' | 'challenge_expired' | 'challenge_displaced';

/** Limit of open challenges. */
const openMax = 16;
/** Validity of a challenge. */
const lifeMs = 60_000;
/** Limit of ended challenges that are remembered, so that a late answer is refused with the reason why its challenge ended. */
const endingsMax = 64;

/**
 * The leader's side of joins. Any node may request a challenge, so strangers must not be able to use up the limit: a new challenge
 * displaces the oldest challenge of the address with the most open ones. A stranger thus displaces its own challenges, not those of a
 * joiner at another address. A stranger with as many addresses as the limit still has to open a challenge from each of them between a
 * joiner's challenge and the joiner's answer.
 */
export class JoinDesk {
  readonly #options: JoinDeskOptions;
  /** By id, oldest first. */
  readonly #open = new Map<string, OpenChallenge>();
  readonly #endings = new Map<string, Ending>();
  /** Counts the calls of `clear`. A challenge is not opened if the count changes while the challenge is being made. */
  #clears = 0;

  constructor(options: JoinDeskOptions) {
    this.#options = options;
  }

  /**
   * Opens a challenge for a node; returns the offer to send.
   * @param source - the client's address, as seen by the node that received the request
   * @throws ClusterError `join_malformed`, `leader_changed`; BarrierError `unseal_key_not_kept`; StoreError
   */
  async challenge(message: unknown, source: string): Promise<object> {
    const request = decodeRequest(message);
    const clears = this.#clears;
    const { barrier, authority, clock } = this.#options;
    const { certificate } = await authority.readOrMake();
    const challengeId = randomBytes(16).toString('hex');
    const announcement = { clusterId: authority.clusterId, authority: certificate, challengeId };
    const { secret, ...wrapping } = await barrier.wrapForJoin(exchangedBefore(request, announcement));
    if (clears !== this.#clears) {
      secret.fill(0);
      throw new ClusterError('leader_changed', 'this node is no longer the active one');
    }
    const offer = { ...announcement, ...wrapping };
    this.#makeRoom();
    this.#open.set(offer.challengeId, { request, offer, secret, source, openedMs: clock.nowMs() });
    return encodeOffer(offer);
  }

  /**
   * Checks the answer to a challenge, which is used up even by a wrong answer; returns the welcome to send.
   * @throws ClusterError `join_malformed`, `challenge_unknown`, `challenge_used`, `challenge_expired`, `challenge_displaced`, `join_proof`;
   *   what `admit` throws
   */
  async answer(message: unknown): Promise<object> {
    const answer = decodeAnswer(message);
    const { secret, ...opening } = this.#take(answer.challengeId);
    try {
      if (!sameProof(answer.proof, joinerProof(secret, opening)))
        throw new ClusterError(
          'join_proof',
          'the proof is wrong: the node does not hold the seal key, or its messages were changed on the way',
        );
      const { nonce: _, ...joiner } = opening.request;
      const admission = await this.#options.admissions.admit(joiner);
      return encodeWelcome({ ...admission, proof: leaderProof(secret, { ...opening, answer, admission }) });
    } finally {
      secret.fill(0);
    }
  }

  /** Ends every open challenge: this node was sealed or is no longer active. */
  clear(): void {
    this.#clears += 1;
    for (const { secret } of this.#open.values()) secret.fill(0);
    this.#open.clear();
    this.#endings.clear();
  }

  #take(id: string): OpenChallenge {
    this.#endExpired();
    const challenge = this.#open.get(id);
    if (challenge === undefined) throw this.#notOpen(id);
    this.#open.delete(id);
    this.#remember(id, 'challenge_used');
    return challenge;
  }

  #notOpen(id: string): ClusterError {
    const ending = this.#endings.get(id) ?? 'challenge_unknown';
    return new ClusterError(ending, `${endings[ending]}; request a new one`);
  }

  #endExpired(): void {
    const now = this.#options.clock.nowMs();
    for (const [id, { openedMs }] of this.#open) if (now - openedMs >= lifeMs) this.#end(id, 'challenge_expired');
  }

  #makeRoom(): void {
    this.#endExpired();
    if (this.#open.size >= openMax) this.#end(oldestOfBusiestSource(this.#open), 'challenge_displaced');
  }

  #end(id: string, ending: Ending): void {
    this.#open.get(id)?.secret.fill(0);
    this.#open.delete(id);
    this.#remember(id, ending);
  }

  #remember(id: string, ending: Ending): void {
    this.#endings.set(id, ending);
    const [oldest] = this.#endings.keys();
    if (this.#endings.size > endingsMax && oldest !== undefined) this.#endings.delete(oldest);
  }
}

const endings: Readonly<Record<Ending | 'challenge_unknown', string>> = {
  challenge_unknown: 'this node does not know this challenge, or it ended long ago',
  challenge_used: 'this challenge has been answered already',
  challenge_expired: 'this challenge has expired: it was valid for one minute',
  challenge_displaced: 'this challenge was displaced by newer ones: too many nodes are joining at the same time',
};

/**
 * Returns the oldest challenge of the source with the most open challenges. If several sources have equally many, returns the oldest
 * challenge of them all.
 */
function oldestOfBusiestSource(open: ReadonlyMap<string, OpenChallenge>): string {
  const bySource = Map.groupBy(open, ([, { source }]) => callerGroup(source));
  const [[id] = ['']] = [...bySource.values()].reduce((most, one) => (one.length > most.length ? one : most), []);
  return id;
}
