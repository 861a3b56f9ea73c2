import {
  checkCounts,
  isSealName,
  isWrappedKey,
  keyIdCharactersMax,
  providerSealTypes,
  type SealTerms,
  wrappedJoinSecretBytes,
} from '@transitd/barrier';
import type { LevelRange } from '@transitd/storage-fsm';
import { z } from 'zod';
import { type Member, parseHostAndPort, parseMembers } from '../membership/membership.ts';
import { ClusterError } from '../refusals/cluster-error.ts';

/** A node that asks to become a member. */
export interface Joiner extends Omit<Member, 'certificate' | 'nextCertificate'> {
  /** PKCS #10 in PEM, signed with the node's own key. */
  readonly request: string;
}

/** Message 1, from the joiner to the leader. */
export interface JoinRequest extends Joiner {
  /** 32 random bytes. They show that the messages of the leader were made after this request. */
  readonly nonce: Buffer;
  /** Fields that only a later release knows, in the order in which they were sent: the proofs cover them. */
  readonly added?: Readonly<Record<string, unknown>>;
}

/** The part of an offer that does not describe the seal. */
export interface Announcement {
  readonly clusterId: string;
  /** The certificate of the cluster's authority, PEM. */
  readonly authority: string;
  /** 16 random bytes, hex. */
  readonly challengeId: string;
}

/** Message 2, from the leader to the joiner. */
export interface JoinOffer extends Announcement {
  readonly terms: SealTerms;
  /** A secret that only a holder of the seal's key can open. */
  readonly wrapped: Buffer;
}

/** Message 3, from the joiner to the leader. */
export interface JoinAnswer {
  readonly challengeId: string;
  readonly proof: Buffer;
}

/** The result of an admission: the joiner is a member. */
export interface Admission {
  /** The node's certificate, PEM. */
  readonly certificate: string;
  /** All members, including the new one. */
  readonly members: readonly Member[];
}

/** Message 4, from the leader to the joiner. */
export interface JoinWelcome extends Admission {
  readonly proof: Buffer;
}

// Every field has a limited size and exactly one encoding. A message that is decoded and encoded again has the bytes that were sent.

const matching = (pattern: RegExp, error: string) => z.string(error).regex(pattern, error);

/** Strict base64 of exactly this many bytes. Its unused bits must be 0. */
const bytes = (count: number) => {
  const error = `is not the base64 of ${count} bytes`;
  return matching(new RegExp(`^[A-Za-z0-9+/=]{${4 * Math.ceil(count / 3)}}$`), error)
    .refine((text) => Buffer.from(text, 'base64').toString('base64') === text, error)
    .transform((text) => Buffer.from(text, 'base64'))
    .refine(({ length }) => length === count, error);
};

/** One PEM block. */
const pem = (label: string, charactersMax: number) => {
  const error = `is not one ${label} in PEM of at most ${charactersMax} characters`;
  const block = new RegExp(`^-----BEGIN ${label}-----\n(?:[A-Za-z0-9+/=]{1,76}\n)+-----END ${label}-----\n?$`);
  return z.string(error).max(charactersMax, error).regex(block, error);
};

const whole = (min: number, max: number) => {
  const error = `is not a whole number from ${min} to ${max}`;
  return z.int(error).min(min, error).max(max, error);
};

const apiAddressProblem = 'is not an http or https address of at most 256 characters';
const apiAddress = matching(/^https?:\/\/[\x21-\x7e]{1,248}$/, apiAddressProblem).refine((text) => {
  const url = URL.parse(text);
  return url !== null && url.username === '' && url.password === '';
}, apiAddressProblem);

/** Whether a string is the API address of a member: scheme, host and port, nothing else. */
export const isLeaderAddress = (text: string): boolean =>
  apiAddress.safeParse(text).success && /^https?:\/\/[^/?#\\]+\/?$/.test(text);

const clusterAddressProblem = 'is not an address such as 10.0.0.1:8201, of at most 256 characters';
const clusterAddress = matching(/^[\x21-\x7e]{1,256}$/, clusterAddressProblem).refine(
  (text) => parseHostAndPort(text) !== undefined,
  clusterAddressProblem,
);

const level = whole(1, 2 ** 32 - 1);
const flag = z.boolean('is neither true nor false');
const challengeId = matching(/^[0-9a-f]{32}$/, 'is not the id of a challenge');
const proof = bytes(32);
const fingerprint = matching(/^[0-9a-f]{64}$/, 'is not a SHA-256 in hex');

/** Limit of all fields of a request that this release does not know, as JSON. */
const addedCharactersMax = 4096;

const levels = z.strictObject({ oldest: level, newest: level }, 'is not a range of feature levels');

/** A joiner of a later release may send further fields: it does not know the release of the leader yet. */
const requestMessage = z
  .looseObject({
    node_id: whole(1, 2 ** 48 - 1),
    name: matching(/^[\w.-]{1,64}$/, 'is not a name of at most 64 letters, digits, _ . and -'),
    api_addr: apiAddress,
    cluster_addr: clusterAddress,
    non_voter: flag,
    feature_levels: levels,
    request: pem('CERTIFICATE REQUEST', 4096),
    nonce: bytes(32),
  })
  .refine(
    ({ node_id, name, api_addr, cluster_addr, non_voter, feature_levels, request, nonce, ...added }) =>
      JSON.stringify(added).length <= addedCharactersMax,
    `has unknown fields of more than ${addedCharactersMax} characters`,
  );

const seal = z.strictObject({
  type: z.enum(['shamir', 'static', ...providerSealTypes], 'is not a type of seal that this release knows'),
  threshold: whole(1, 255),
  shares: whole(1, 255),
  share_hashes: z.array(fingerprint, 'is not a list').max(255, 'has more than 255 entries'),
  key_id: z.string('is not a string').max(keyIdCharactersMax, `is longer than ${keyIdCharactersMax} characters`),
  wrapped_key: z.string('is not a string').exactOptional(),
  name: z.string('is not a string').exactOptional(),
});

const offerMessage = z.strictObject({
  cluster_id: matching(/^[0-9a-f-]{1,64}$/, 'is not the id of a cluster'),
  authority: pem('CERTIFICATE', 8192),
  seal,
  challenge_id: challengeId,
  wrapped: bytes(wrappedJoinSecretBytes),
});

const answerMessage = z.strictObject({ challenge_id: challengeId, proof });

/** JSON Schemas of the joiner's two messages. */
export const joinRequestSchema = z.toJSONSchema(requestMessage, { io: 'input' });
export const joinAnswerSchema = z.toJSONSchema(answerMessage, { io: 'input' });

const memberMessage = z.strictObject({
  node_id: whole(1, 2 ** 48 - 1),
  name: z.string(),
  api_addr: z.string(),
  cluster_addr: z.string(),
  certificate: z.string(),
  next_certificate: z.string().exactOptional(),
  non_voter: flag,
  feature_levels: levels,
});

const welcomeMessage = z.strictObject({
  certificate: pem('CERTIFICATE', 8192),
  members: z.array(memberMessage, 'is not a list').max(256, 'has more than 256 entries'),
  proof,
});

const levelsOf = ({ levels: { oldest, newest } }: { readonly levels: LevelRange }): object => ({ oldest, newest });

export const encodeRequest = (request: JoinRequest): object => ({
  node_id: request.id,
  name: request.name,
  api_addr: request.apiAddress,
  cluster_addr: request.clusterAddress,
  non_voter: request.nonVoter,
  feature_levels: levelsOf(request),
  request: request.request,
  nonce: request.nonce.toString('base64'),
  ...request.added,
});

/** @throws ClusterError `join_malformed`, as do all decoders here */
export function decodeRequest(message: unknown): JoinRequest {
  const { node_id, name, api_addr, cluster_addr, non_voter, feature_levels, request, nonce, ...added } = parse(
    requestMessage,
    message,
  );
  return {
    id: node_id,
    name,
    apiAddress: api_addr,
    clusterAddress: cluster_addr,
    nonVoter: non_voter,
    levels: feature_levels,
    request,
    nonce,
    ...(Object.keys(added).length > 0 && { added }),
  };
}

export const encodeAnnouncement = ({ clusterId, authority, challengeId }: Announcement): object => ({
  cluster_id: clusterId,
  authority,
  challenge_id: challengeId,
});

export const encodeOffer = (offer: JoinOffer): object => ({
  ...encodeAnnouncement(offer),
  seal: {
    type: offer.terms.type,
    threshold: offer.terms.threshold,
    shares: offer.terms.shares,
    share_hashes: offer.terms.shareHashes.map((hash) => hash.toString('hex')),
    key_id: offer.terms.keyId,
    ...(offer.terms.wrappedKey !== undefined && { wrapped_key: offer.terms.wrappedKey }),
    ...(offer.terms.name !== undefined && { name: offer.terms.name }),
  },
  wrapped: offer.wrapped.toString('base64'),
});

export function decodeOffer(message: unknown): JoinOffer {
  const { cluster_id, authority, seal, challenge_id, wrapped } = parse(offerMessage, message);
  return { clusterId: cluster_id, authority, terms: termsOf(seal), challengeId: challenge_id, wrapped };
}

function termsOf({ type, name, threshold, shares, share_hashes, key_id, wrapped_key }: z.output<typeof seal>): SealTerms {
  try {
    checkCounts({ shares, threshold });
  } catch (error) {
    throw new ClusterError('join_malformed', 'seal: threshold does not fit the number of shares', { cause: error });
  }
  if (share_hashes.length !== shares)
    throw new ClusterError('join_malformed', 'seal.share_hashes does not have one hash for each share');
  if ((key_id === '') !== (type === 'shamir'))
    throw new ClusterError('join_malformed', 'seal.key_id does not fit the type of the seal');
  if (!isSealName(type, name)) throw new ClusterError('join_malformed', 'seal.name does not fit the type of the seal');
  if (!isWrappedKey(type, wrapped_key))
    throw new ClusterError('join_malformed', 'seal.wrapped_key does not fit the type of the seal');
  const shareHashes = share_hashes.map((hash) => Buffer.from(hash, 'hex'));
  return {
    type,
    ...(name !== undefined && { name }),
    shares,
    threshold,
    shareHashes,
    keyId: key_id,
    ...(wrapped_key !== undefined && { wrappedKey: wrapped_key }),
  };
}

export const encodeAnswer = ({ challengeId, proof }: JoinAnswer): object => ({
  challenge_id: challengeId,
  proof: proof.toString('base64'),
});

export function decodeAnswer(message: unknown): JoinAnswer {
  const { challenge_id, proof } = parse(answerMessage, message);
  return { challengeId: challenge_id, proof };
}

export const encodeAdmission = ({ certificate, members }: Admission): object => ({
  certificate,
  members: members.map((member) => ({
    node_id: member.id,
    name: member.name,
    api_addr: member.apiAddress,
    cluster_addr: member.clusterAddress,
    certificate: member.certificate,
    ...(member.nextCertificate !== undefined && { next_certificate: member.nextCertificate }),
    non_voter: member.nonVoter,
    feature_levels: levelsOf(member),
  })),
});

export const encodeWelcome = (welcome: JoinWelcome): object => ({
  ...encodeAdmission(welcome),
  proof: welcome.proof.toString('base64'),
});

export function decodeWelcome(message: unknown): JoinWelcome {
  const { certificate, members, proof } = parse(welcomeMessage, message);
  return { certificate, members: membersOf(members), proof };
}

function membersOf(members: z.output<typeof welcomeMessage>['members']): readonly Member[] {
  const list = members.map(({ node_id, api_addr, cluster_addr, non_voter, next_certificate, feature_levels, ...same }) => ({
    ...same,
    id: node_id,
    apiAddress: api_addr,
    clusterAddress: cluster_addr,
    nonVoter: non_voter,
    levels: feature_levels,
    ...(next_certificate !== undefined && { nextCertificate: next_certificate }),
  }));
  try {
    return parseMembers(list);
  } catch (error) {
    throw new ClusterError('join_malformed', 'members is not a list of members', { cause: error });
  }
}

/** Parses a message. @throws ClusterError with the first problem and its path, and without any content of the message */
function parse<S extends z.ZodType>(schema: S, message: unknown): z.output<S> {
  const result = schema.safeParse(message);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const place = issue?.path.join('.') || 'the message';
  const problem = issue?.code === 'unrecognized_keys' ? 'has an unknown field' : (issue?.message ?? 'is malformed');
  throw new ClusterError('join_malformed', `${place} ${problem}`);
}
