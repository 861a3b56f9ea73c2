import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import {
  type Admission,
  type Announcement,
  encodeAdmission,
  encodeAnnouncement,
  encodeAnswer,
  encodeOffer,
  encodeRequest,
  type JoinAnswer,
  type JoinOffer,
  type JoinRequest,
} from './join-messages.ts';

/** The first two messages of a join: the exchange up to the moment when the joiner computes its proof. */
export interface JoinOpening {
  readonly request: JoinRequest;
  readonly offer: JoinOffer;
}

/** Returns the digest of the messages before the secret is wrapped. The seal's terms are left out: the barrier binds the secret to them. */
export const exchangedBefore = (request: JoinRequest, announcement: Announcement): Buffer =>
  digestOf([encodeRequest(request), encodeAnnouncement(announcement)]);

/** Returns the joiner's proof that it opened the secret, bound to the messages that it saw. */
export const joinerProof = (secret: Uint8Array, { request, offer }: JoinOpening): Buffer =>
  proofBy(secret, 'joiner', [encodeRequest(request), encodeOffer(offer)]);

/** Returns the leader's proof that it made the secret, bound to the whole exchange. */
export const leaderProof = (
  secret: Uint8Array,
  { request, offer, answer, admission }: JoinOpening & { readonly answer: JoinAnswer; readonly admission: Admission },
): Buffer =>
  proofBy(secret, 'leader', [encodeRequest(request), encodeOffer(offer), encodeAnswer(answer), encodeAdmission(admission)]);

/** Compares two proofs in constant time. */
export const sameProof = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && timingSafeEqual(one, other);

/** HMAC-SHA256 (RFC 2104) of role and digest; both roles have six letters, so neither is a prefix of the other. */
const proofBy = (secret: Uint8Array, role: 'joiner' | 'leader', messages: readonly object[]): Buffer =>
  createHmac('sha256', secret).update(role).update(digestOf(messages)).digest();

/**
 * Returns the SHA-256 of the messages, encoded as the JSON of one array. The order of properties is fixed, so two different exchanges never
 * give the same bytes.
 */
const digestOf = (messages: readonly object[]): Buffer =>
  createHash('sha256')
    .update(JSON.stringify(['transitd join 1', ...messages]))
    .digest();
