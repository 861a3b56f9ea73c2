import { ReplicationError } from '../replication-error.ts';

/**
 * The registry of secondaries: the activation tokens of a primary that are not used yet, and the clusters that may follow it. It is a local
 * record of the primary and is never replicated. Times are milliseconds since 1970 by the primary's clock. A certificate is identified by
 * its fingerprint: the SHA-256 of its DER in lower-case hex.
 */
export interface Registry {
  readonly activations: readonly Activation[];
  readonly registrations: readonly Registration[];
  /** Certificates that are no longer valid, newest last, so that their holders can be told the reason. */
  readonly ended: readonly EndedCertificate[];
}

/** An activation token that was not used yet. */
export interface Activation {
  /** Id that the operator gave to the secondary. */
  readonly secondary: string;
  /** The certificate in the token. */
  readonly certificate: string;
  readonly expiresMs: number;
}

/** A secondary: a cluster that may follow this primary. */
export interface Registration {
  readonly secondary: string;
  /** Id of its Raft cluster. */
  readonly cluster: string;
  readonly certificate: string;
  /** True once its first hello was answered. From then on the fence counts it, and the name belongs to its cluster until it is revoked. */
  readonly follows: boolean;
  /**
   * The token by which it was registered; kept until its first hello, because the secondary uses the token again if the answer was lost.
   */
  readonly activation?: UsedActivation;
}

interface UsedActivation extends Omit<Activation, 'secondary'> {
  /** SHA-256 of the certified key (DER of SPKI), in lower-case hex. */
  readonly key: string;
  /** The certificate that was issued, PEM. */
  readonly issued: string;
}

/** The use of an activation token. */
interface TokenUse extends Omit<UsedActivation, 'expiresMs'>, Pick<Registration, 'cluster'> {
  readonly nowMs: number;
}

interface EndedCertificate {
  readonly certificate: string;
  readonly why: EndReason;
}

/** `replaced`: the secondary was activated again, or got another token. */
export type EndReason = 'used' | 'expired' | 'revoked' | 'replaced';

/** The right that a certificate gives: to get the certificate of a secondary (an activation token), or to follow this primary. */
export type Credential =
  | { readonly kind: 'activate' | 'follow'; readonly secondary: string }
  | { readonly kind: 'ended'; readonly why: EndReason };

export const emptyRegistry: Registry = { activations: [], registrations: [], ended: [] };

/** Limits of the registry, so that its record stays small. */
export const secondariesMax = 16;
export const endedMax = 64;
export const activationMsMax = 24 * 3_600_000;
export const defaultActivationMs = 30 * 60_000;

/** Returns whether the text may name a secondary: up to 64 letters, digits, dots, hyphens and underscores. */
export const isSecondaryId = (text: string): boolean => /^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$/.test(text);

/** Returns the right of a certificate. Undefined if it never belonged to a secondary, or has been invalid for long. */
export function credentialOf(registry: Registry, certificate: string, nowMs: number): Credential | undefined {
  for (const { secondary, certificate: listed, expiresMs } of tokensOf(registry))
    if (listed === certificate) return nowMs < expiresMs ? { kind: 'activate', secondary } : { kind: 'ended', why: 'expired' };
  const registration = registry.registrations.find((one) => one.certificate === certificate);
  if (registration !== undefined) return { kind: 'follow', secondary: registration.secondary };
  const ended = registry.ended.find((one) => one.certificate === certificate);
  return ended && { kind: 'ended', why: ended.why };
}

/**
 * Adds an activation token. It replaces an unused token of the same secondary, and leaves a registration of that secondary in force until
 * the token is used.
 * @throws ReplicationError `malformed_id`, `malformed_ttl`, `too_many`
 */
export function tokenIssued(
  registry: Registry,
  { secondary, certificate, nowMs, ttlMs }: Omit<Activation, 'expiresMs'> & { readonly nowMs: number; readonly ttlMs: number },
): Registry {
  if (!isSecondaryId(secondary))
    throw new ReplicationError('malformed_id', 'id must have 1 to 64 letters, digits, dots, hyphens or underscores');
  if (!(ttlMs > 0 && ttlMs <= activationMsMax))
    throw new ReplicationError('malformed_ttl', 'ttl must be above 0 and at most 24 hours');
  const present = withoutExpired(registry, nowMs);
  const replaced = present.activations.filter((one) => one.secondary === secondary);
  const others = present.activations.filter((one) => one.secondary !== secondary);
  const ids = new Set([secondary, ...[...others, ...present.registrations].map((one) => one.secondary)]);
  if (ids.size > secondariesMax)
    throw new ReplicationError('too_many', `a primary has at most ${secondariesMax} secondaries: revoke one first`);
  const activations = [...others, { secondary, certificate, expiresMs: nowMs + ttlMs }];
  return withEnded({ ...present, activations }, replaced, 'replaced');
}

/**
 * Returns the secondary that a token is for.
 * @throws ReplicationError `unknown_token`, `used`, `expired`, `revoked`, `replaced`
 */
export function secondaryOfToken(registry: Registry, token: string, nowMs: number): string {
  const right = credentialOf(registry, token, nowMs);
  if (right?.kind === 'activate') return right.secondary;
  if (right?.kind === 'ended') throw new ReplicationError(right.why, endings[right.why]);
  throw new ReplicationError('unknown_token', 'this primary does not know the activation token');
}

/**
 * Uses an activation token: registers the certificate that was issued for it. An earlier certificate of the secondary becomes invalid. The
 * same key may use the token again until it expires, and gets the certificate that was issued first. While a cluster follows under the name
 * of the token, no other cluster gets it: the fence would no longer count the first one, which lives.
 * @returns the registry, and the certificate to answer with, PEM
 * @throws ReplicationError `unknown_token`, `used`, `expired`, `revoked`, `replaced`, `name_taken`
 */
export function tokenUsed(
  registry: Registry,
  token: string,
  { key, cluster, certificate, issued, nowMs }: TokenUse,
): { readonly registry: Registry; readonly issued: string } {
  const secondary = secondaryOfToken(registry, token, nowMs);
  const former = registry.registrations.find((one) => one.secondary === secondary);
  const activation = registry.activations.find((one) => one.certificate === token);
  if (activation === undefined) {
    if (former?.activation?.key !== key) throw new ReplicationError('used', endings.used);
    return { registry, issued: former.activation.issued };
  }
  if (former?.follows === true && former.cluster !== cluster)
    throw new ReplicationError(
      'name_taken',
      `another cluster follows this primary as ${secondary}: revoke it first, or use another name`,
    );
  const registration: Registration = {
    ...{ secondary, cluster, certificate, follows: former?.follows === true },
    activation: { certificate: token, expiresMs: activation.expiresMs, key, issued },
  };
  const changed = {
    ...registry,
    activations: registry.activations.filter((one) => one !== activation),
    registrations: [...registry.registrations.filter((one) => one !== former), registration],
  };
  const ended = former === undefined ? [] : [former, ...(former.activation === undefined ? [] : [former.activation])];
  return { registry: withEnded(changed, ended, 'replaced'), issued };
}

/**
 * Records that the hello of a secondary is about to be answered. Returns the same registry if that is already recorded.
 * @throws ReplicationError `unknown_secondary` when the certificate is no longer in force
 */
export function follows(registry: Registry, certificate: string): Registry {
  const registration = registry.registrations.find((one) => one.certificate === certificate);
  if (registration === undefined) throw new ReplicationError('unknown_secondary', 'the secondary was revoked or replaced');
  const { activation, ...kept } = registration;
  if (kept.follows && activation === undefined) return registry;
  const registrations = registry.registrations.map((one) => (one === registration ? { ...kept, follows: true } : one));
  return withEnded({ ...registry, registrations }, activation === undefined ? [] : [activation], 'used');
}

/** Removes every right of a secondary. @throws ReplicationError `unknown_secondary` */
export function revoked(registry: Registry, secondary: string): Registry {
  const isOther = (one: { readonly secondary: string }): boolean => one.secondary !== secondary;
  const activations = registry.activations.filter(isOther);
  const registrations = registry.registrations.filter(isOther);
  const lost = [...registry.activations, ...registry.registrations].filter((one) => !isOther(one));
  if (lost.length === 0) throw new ReplicationError('unknown_secondary', 'no secondary or token has this id');
  const used = registry.registrations.filter((one) => !isOther(one)).flatMap(({ activation }) => activation ?? []);
  return withEnded({ ...registry, activations, registrations }, [...used, ...lost], 'revoked');
}

/** Returns the ids of the secondaries that the fence counts. */
export const following = (registry: Registry): string[] =>
  registry.registrations.filter(({ follows }) => follows).map(({ secondary }) => secondary);

function* tokensOf({ activations, registrations }: Registry): Generator<Activation> {
  yield* activations;
  for (const { secondary, activation } of registrations) if (activation !== undefined) yield { secondary, ...activation };
}

function withoutExpired(registry: Registry, nowMs: number): Registry {
  const expired = registry.activations.filter(({ expiresMs }) => nowMs >= expiresMs);
  const activations = registry.activations.filter((one) => !expired.includes(one));
  return withEnded({ ...registry, activations }, expired, 'expired');
}

const withEnded = (registry: Registry, certificates: readonly { readonly certificate: string }[], why: EndReason): Registry => ({
  ...registry,
  ended: [...registry.ended, ...certificates.map(({ certificate }) => ({ certificate, why }))].slice(-endedMax),
});

const endings: Readonly<Record<EndReason, string>> = {
  used: 'the activation token was used already',
  expired: 'the activation token has expired',
  revoked: 'the activation token was revoked',
  replaced: 'the activation token was replaced by a newer one',
};
