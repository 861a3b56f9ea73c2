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

/** The first two messages, which are all there is when the joiner shows its proof. */
export interface JoinOpening {
  readonly request: JoinRequest;
  readonly offer: JoinOffer;
}

/** What has been said before the secret is wrapped, beside the seal's terms, which the barrier binds itself. */
export const exchangedBefore = (request: JoinRequest, announcement: Announcement): Buffer =>
  digestOf([encodeRequest(request), encodeAnnouncement(announcement)]);

/** By which the joiner shows that it opened the secret, and what it has seen. */
export const joinerProof = (secret: Uint8Array, { request, offer }: JoinOpening): Buffer =>
  proofBy(secret, 'joiner', [encodeRequest(request), encodeOffer(offer)]);

/** By which the leader shows that it made the secret, and what it gives. */
export const leaderProof = (
  secret: Uint8Array,
  { request, offer, answer, admission }: JoinOpening & { readonly answer: JoinAnswer; readonly admission: Admission },
): Buffer =>
  proofBy(secret, 'leader', [encodeRequest(request), encodeOffer(offer), encodeAnswer(answer), encodeAdmission(admission)]);

/** In a time that tells nothing about the proofs. */
export const sameProof = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && timingSafeEqual(one, other);

/** HMAC-SHA256 (RFC 2104) of role and digest; both roles have six letters, so neither can be taken for the beginning of the other. */
const proofBy = (secret: Uint8Array, role: 'joiner' | 'leader', messages: readonly object[]): Buffer =>
  createHmac('sha256', secret).update(role).update(digestOf(messages)).digest();

/**
 * SHA-256 of everything exchanged: the JSON of one array of the messages as they are encoded here, members in their order, so no two
 * different exchanges give the same bytes.
 */
const digestOf = (messages: readonly object[]): Buffer =>
  createHash('sha256')
    .update(JSON.stringify(['transitd join 1', ...messages]))
    .digest();
