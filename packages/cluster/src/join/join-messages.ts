import {
  checkCounts,
  isSealName,
  isWrappedKey,
  keyIdCharactersMax,
  providerSealTypes,
  type SealTerms,
  wrappedJoinSecretBytes,
} from '@transitd/barrier';
import { z } from 'zod';
import { isHostAndPort, type Member, nodeIdMax, parseMembers, pem } from '../membership/membership.ts';
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
const clusterAddress = matching(/^[\x21-\x7e]{1,256}$/, clusterAddressProblem).refine(isHostAndPort, clusterAddressProblem);

const level = whole(1, 2 ** 32 - 1);
const flag = z.boolean('is neither true nor false');
const challengeId = matching(/^[0-9a-f]{32}$/, 'is not the id of a challenge');
const proof = bytes(32);
const shareHash = matching(/^[0-9a-f]{64}$/, 'is not a SHA-256 in hex').transform((hex) => Buffer.from(hex, 'hex'));

/** Limit of all fields of a request that this release does not know, as JSON. */
const addedCharactersMax = 4096;

const levels = z.strictObject({ oldest: level, newest: level }, 'is not a range of feature levels');

/** A joiner of a later release may send further fields: it does not know the release of the leader yet. */
const requestMessage = z
  .looseObject({
    node_id: whole(1, nodeIdMax),
    name: matching(/^[\w.-]{1,64}$/, 'is not a name of at most 64 letters, digits, _ . and -'),
    api_addr: apiAddress,
    cluster_addr: clusterAddress,
    non_voter: flag,
    feature_levels: levels,
    request: pem('CERTIFICATE REQUEST', 4096),
    nonce: bytes(32),
  })
  .refine(
    (message) => JSON.stringify(addedIn(message)).length <= addedCharactersMax,
    `has unknown fields of more than ${addedCharactersMax} characters`,
  );

/** Returns the fields that this release does not know. */
const addedIn = (message: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(message).filter(([name]) => !Object.hasOwn(requestMessage.shape, name)));

const seal = z.strictObject({
  type: z.enum(['shamir', 'static', ...providerSealTypes], 'is not a type of seal that this release knows'),
  threshold: whole(1, 255),
  shares: whole(1, 255),
  share_hashes: z.array(shareHash, 'is not a list').max(255, 'has more than 255 entries'),
  key_id: z.string('is not a string').max(keyIdCharactersMax, `is longer than ${keyIdCharactersMax} characters`),
  wrapped_key: z.string('is not a string').exactOptional(),
  name: z.string('is not a string').exactOptional(),
});

const announcement = z.strictObject({
  cluster_id: matching(/^[0-9a-f-]{1,64}$/, 'is not the id of a cluster'),
  authority: pem('CERTIFICATE', 8192),
  challenge_id: challengeId,
});

const offerMessage = announcement.extend({ seal, wrapped: bytes(wrappedJoinSecretBytes) });

const answerMessage = z.strictObject({ challenge_id: challengeId, proof });

/** JSON Schemas of the joiner's two messages. */
export const joinRequestSchema = z.toJSONSchema(requestMessage, { io: 'input' });
export const joinAnswerSchema = z.toJSONSchema(answerMessage, { io: 'input' });

const memberMessage = z.strictObject({
  node_id: whole(1, nodeIdMax),
  name: z.string(),
  api_addr: z.string(),
  cluster_addr: z.string(),
  certificate: z.string(),
  next_certificate: z.string().exactOptional(),
  non_voter: flag,
  feature_levels: levels,
});

const admission = z.strictObject({
  certificate: pem('CERTIFICATE', 8192),
  members: z.array(memberMessage, 'is not a list').max(256, 'has more than 256 entries'),
});

const welcomeMessage = admission.extend({ proof });

/** The names in memory of the fields that have another name in a message. */
const namesInMemory = {
  node_id: 'id',
  api_addr: 'apiAddress',
  cluster_addr: 'clusterAddress',
  non_voter: 'nonVoter',
  feature_levels: 'levels',
  next_certificate: 'nextCertificate',
  cluster_id: 'clusterId',
  challenge_id: 'challengeId',
  seal: 'terms',
  share_hashes: 'shareHashes',
  key_id: 'keyId',
  wrapped_key: 'wrappedKey',
} as const;
type NameInMemory<K> = K extends keyof typeof namesInMemory ? (typeof namesInMemory)[K] : K;
type InMemory<T> = { [K in keyof T as string extends K ? never : NameInMemory<K>]: T[K] };

const nameInMemory = (name: string): string => (namesInMemory as Readonly<Record<string, string>>)[name] ?? name;

/** Returns the known fields of a message under their names in memory. */
const inMemory = <S extends z.ZodObject>({ shape }: S, message: z.output<S>): InMemory<z.output<S>> =>
  Object.fromEntries(
    Object.keys(shape).flatMap((name) => (Object.hasOwn(message, name) ? [[nameInMemory(name), message[name]]] : [])),
  ) as InMemory<z.output<S>>;

/** Encodes a value by its schema. Fields are in the order of the schema, so that two encodings of a message have the same bytes. */
function encode(schema: unknown, value: unknown): unknown {
  if (schema instanceof z.ZodArray) return (value as readonly unknown[]).map((one) => encode(schema.element, one));
  if (Buffer.isBuffer(value)) return value.toString(schema === shareHash ? 'hex' : 'base64');
  if (!(schema instanceof z.ZodObject)) {
    if (typeof value === 'object') throw new TypeError('a field of a join message has a schema that cannot be encoded');
    return value;
  }
  const fields = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    Object.entries(schema.shape).flatMap(([name, field]) => {
      const one = fields[nameInMemory(name)];
      return one === undefined ? [] : [[name, encode(field, one)]];
    }),
  );
}

const encoder = (schema: z.ZodObject) => (fields: object) => encode(schema, fields) as object;

export const encodeRequest = ({ added, ...request }: JoinRequest): object => ({ ...encoder(requestMessage)(request), ...added });
export const encodeAnnouncement: (fields: Announcement) => object = encoder(announcement);
export const encodeOffer: (offer: JoinOffer) => object = encoder(offerMessage);
export const encodeAnswer: (answer: JoinAnswer) => object = encoder(answerMessage);
export const encodeAdmission: (fields: Admission) => object = encoder(admission);
export const encodeWelcome: (welcome: JoinWelcome) => object = encoder(welcomeMessage);

/** @throws ClusterError `join_malformed`, as do all decoders here */
export function decodeRequest(message: unknown): JoinRequest {
  const read = parse(requestMessage, message);
  const added = addedIn(read);
  return { ...inMemory(requestMessage, read), ...(Object.keys(added).length > 0 && { added }) };
}

export function decodeOffer(message: unknown): JoinOffer {
  const offer = inMemory(offerMessage, parse(offerMessage, message));
  const terms = inMemory(seal, offer.terms);
  const problem = problemOf(terms);
  if (problem !== undefined) throw new ClusterError('join_malformed', `seal${problem}`);
  return { ...offer, terms };
}

function problemOf({ type, name, threshold, shares, shareHashes, keyId, wrappedKey }: SealTerms): string | undefined {
  try {
    checkCounts({ shares, threshold });
  } catch {
    return ': threshold does not fit the number of shares';
  }
  if (shareHashes.length !== shares) return '.share_hashes does not have one hash for each share';
  if ((keyId === '') !== (type === 'shamir')) return '.key_id does not fit the type of the seal';
  if (!isSealName(type, name)) return '.name does not fit the type of the seal';
  return isWrappedKey(type, wrappedKey) ? undefined : '.wrapped_key does not fit the type of the seal';
}

export const decodeAnswer = (message: unknown): JoinAnswer => inMemory(answerMessage, parse(answerMessage, message));

export function decodeWelcome(message: unknown): JoinWelcome {
  const welcome = inMemory(welcomeMessage, parse(welcomeMessage, message));
  try {
    return { ...welcome, members: parseMembers(welcome.members.map((member) => inMemory(memberMessage, member))) };
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
