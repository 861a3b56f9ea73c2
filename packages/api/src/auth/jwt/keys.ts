import { createPublicKey } from 'node:crypto';
import { AccessError, type FetchedKeys, invalidRequest, type KeySources, type OutsideWaits, refusedBy } from '@transitd/access';
import { checkJsonLimits, runAtOnce } from '@transitd/event-loop';
import type { Clock } from '@transitd/process';
import type { JSONWebKeySet, JWK, JWTPayload, JWTVerifyGetKey, JWTVerifyOptions } from 'jose';
import { ProviderKeys } from './provider-keys.ts';

/** Source of the keys that verify signed tokens: public keys in PEM, a key set as text, or where one is fetched from. */
export type JwtKeySource =
  | { readonly kind: 'keys'; readonly keys: readonly string[] }
  | { readonly kind: 'jwks'; readonly jwks: string }
  | FetchedKeys;

/**
 * Asymmetric algorithms only (RFC 7518 §3.1, RFC 8037, RFC 9864): with a symmetric one, anyone with the published key could sign.
 */
export const jwtAlgorithms: readonly string[] = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'],
  ...['EdDSA', 'Ed25519'],
];

/** Maximum number of keys of a source: a login may try each of them. */
export const keysMax = 100;
const keySetCharsMax = 1024 * 1024;
/** Limits on the text of a key set, checked before it is parsed: a key has some ten members, and its certificates are long texts. */
const keySetLimits = {
  depthMax: 8,
  valuesMax: 64 * keysMax,
  containersMax: 4 * keysMax,
  membersMax: () => 64,
  textCharsMax: 64 * 1024,
  refusal: (reason: string) => invalidRequest(`a key set must not have ${reason}`),
};
/** Largest RSA key that verifies tokens, as base64url: a modulus of 8,192 bits and an exponent of 32. Every login computes with them. */
const [modulusCharsMax, exponentCharsMax] = [1366, 6];
const providersMax = 64;

/** Verifies signed tokens. Keeps fetched keys by source. */
export class JwtKeys {
  readonly #sources: KeySources;
  readonly #clock: Clock;
  readonly #providers = new Map<string, ProviderKeys>();
  readonly #waits: OutsideWaits;

  constructor({
    sources,
    clock,
    waits,
  }: {
    readonly sources: KeySources;
    readonly clock: Clock;
    readonly waits: OutsideWaits;
  }) {
    this.#sources = sources;
    this.#clock = clock;
    this.#waits = waits;
  }

  /**
   * Returns the claims of a token that is signed by one of the keys.
   * @throws AccessError `claim_refused`, `invalid_request` for any other token, `keys_unavailable`, `busy_logins`
   */
  async verify(source: JwtKeySource, jwt: string, options: JWTVerifyOptions): Promise<JWTPayload> {
    const jose = await loadJose();
    try {
      if (source.kind === 'keys') return await claimsOf(jose, { jwt, keys: { keys: source.keys.map(pemAsJwk) }, options });
      if (source.kind === 'jwks') return await claimsOf(jose, { jwt, keys: parseKeySet(source.jwks), options });
      const [provider, sinceMs] = [this.#providerOf(source), this.#clock.nowMs()];
      try {
        return await claimsOf(jose, { jwt, keys: await this.#waitFor(source, provider.current()), options });
      } catch (error) {
        if (!(error instanceof jose.errors.JWKSNoMatchingKey)) throw error;
        // The signer may have a new key.
        return await claimsOf(jose, { jwt, keys: await this.#waitFor(source, provider.newest(sinceMs)), options });
      }
    } catch (error) {
      throw refusalOf(jose, error);
    }
  }

  /**
   * Fetches the keys of a source that is being configured.
   * @param beginning - of the message of the error
   * @throws AccessError `invalid_request`
   */
  async check(source: FetchedKeys, beginning: string): Promise<void> {
    try {
      await this.#providerOf(source).fetch();
    } catch (error) {
      throw invalidRequest(`${beginning}: ${reasonFor(error)}`);
    }
  }

  /** Drops the fetched keys. */
  clear(): void {
    this.#providers.clear();
  }

  async #waitFor(source: FetchedKeys, keys: JSONWebKeySet | Promise<JSONWebKeySet>): Promise<JSONWebKeySet> {
    if (!(keys instanceof Promise)) return keys;
    return this.#waits.run({ server: nameOf(source) }, 'too many logins wait for the keys that verify tokens', () => keys);
  }

  #providerOf(source: FetchedKeys): ProviderKeys {
    const name = nameOf(source);
    const present = this.#providers.get(name);
    if (present !== undefined) return present;
    const oldest = this.#providers.size >= providersMax ? this.#providers.keys().next() : undefined;
    if (oldest?.done === false) this.#providers.delete(oldest.value);
    const provider = new ProviderKeys(() => this.#fetch(source), this.#clock);
    this.#providers.set(name, provider);
    return provider;
  }

  async #fetch(source: FetchedKeys): Promise<JSONWebKeySet> {
    try {
      const text = await this.#sources.fetch(source);
      if (text === undefined)
        throw new AccessError('keys_unavailable', 'the configuration of this node has no key file of that name');
      return parseKeySet(text);
    } catch (error) {
      this.#sources.failed(source, error);
      if (error instanceof AccessError && error.code === 'keys_unavailable') throw error;
      throw new AccessError('keys_unavailable', 'the keys that verify tokens cannot be fetched', { cause: error });
    }
  }
}

const nameOf = (source: FetchedKeys): string => JSON.stringify(source);

/** Returns why keys cannot be fetched. Of a system error only its code: its text may contain what the other side sent. */
function reasonFor(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const { code, message } = Object(cause ?? error) as Readonly<Record<string, unknown>>;
  return String(cause instanceof AccessError || typeof code !== 'string' ? message : code);
}

type Jose = typeof import('jose');
/** Loads the library on demand: most nodes, and all gateways, verify no signed token. */
const loadJose = (): Promise<Jose> => import('jose');

async function claimsOf(
  { createLocalJWKSet, errors, jwtVerify }: Jose,
  { jwt, keys, options }: { readonly jwt: string; readonly keys: JSONWebKeySet; readonly options: JWTVerifyOptions },
): Promise<JWTPayload> {
  const all = createLocalJWKSet(keys);
  const haveIds = keys.keys.some(({ kid }) => kid !== undefined);
  // Keys without ids, such as PEM keys, cannot be selected by the id that most issuers put into a token: any of them may verify it.
  const getKey: JWTVerifyGetKey = haveIds ? all : ({ kid: _, ...header }, token) => all(header, token);
  try {
    return (await jwtVerify(jwt, getKey, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    // Several keys match because they have no key id. Try each of them; one that cannot be used does not keep the others from it.
    let failure: unknown;
    for await (const key of error) {
      try {
        return (await jwtVerify(jwt, key, options)).payload;
      } catch (inner) {
        if (inner instanceof errors.JWSSignatureVerificationFailed) failure = inner;
        else if (inner instanceof errors.JOSEError) throw inner;
        else failure ??= inner;
      }
    }
    throw failure;
  }
}

/** Returns the error for a token that none of the keys has signed. @param constraint - what refused it instead, if a key has signed it */
export const forgedToken = (constraint = 'signature'): AccessError =>
  invalidRequest('the token is refused: ERR_JWS_SIGNATURE_VERIFICATION_FAILED', refusedBy(constraint));

/**
 * Returns the error for a token that one of the keys has signed, because of a claim.
 * @param constraint - the setting that refuses the claim, or the claim itself
 */
export const claimRefused = (why: string, constraint: string, claim: unknown): AccessError =>
  new AccessError('claim_refused', `the token is refused: ${why}`, { refusedBy: refusedBy(constraint, claim) });

/** The settings that the library checks, by claim. */
const settings: Readonly<Record<string, string>> = { iss: 'bound_issuer', aud: 'bound_audiences', sub: 'bound_subject' };

/** Texts for the library's reasons to refuse a claim. */
const reasons: Readonly<Record<string, string>> = { missing: 'missing', check_failed: 'not the expected one' };

/** Returns the error for a refused token: the reason and the name of the claim, without any content of the token. */
function refusalOf({ errors }: Jose, error: unknown): AccessError {
  if (error instanceof AccessError) return error;
  if (error instanceof errors.JWSSignatureVerificationFailed) return forgedToken();
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired) {
    const { claim, payload } = error;
    const why = `${error.code}, its claim "${claim}" is ${reasons[error.reason] ?? 'invalid'}`;
    return claimRefused(why, settings[claim] ?? claim, payload[claim]);
  }
  if (error instanceof errors.JOSEError) return invalidRequest(`the token is refused: ${error.code}`, refusedBy('jwt'));
  // An error about a key, such as a short key or an unknown curve.
  return new AccessError('keys_unavailable', 'a key that verifies tokens cannot be used', { cause: error });
}

/** Parses a JSON Web Key Set of public keys. @throws AccessError `invalid_request` */
export function parseKeySet(text: string): JSONWebKeySet {
  if (text.length > keySetCharsMax) throw invalidRequest(`a key set must have at most ${keySetCharsMax} characters`);
  runAtOnce(checkJsonLimits(text, keySetLimits));
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw invalidRequest('a key set must be JSON');
  }
  const keys: unknown = Reflect.get(Object(parsed), 'keys');
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > keysMax)
    throw invalidRequest(`a key set must have 1 to ${keysMax} keys`);
  for (const key of keys) checkJwk(key);
  return { keys: keys as JWK[] };
}

function checkJwk(key: unknown): void {
  const { kty, d, k } = Object(key) as Readonly<Record<string, unknown>>;
  if (typeof kty !== 'string') throw invalidRequest('each item of a key set must be a key with kty');
  if (kty === 'oct' || d !== undefined || k !== undefined)
    throw invalidRequest('a key set that verifies tokens must contain public keys only');
  checkNumbers(Object(key));
}

function checkNumbers({ n, e }: { readonly n?: unknown; readonly e?: unknown }): void {
  if (String(n ?? '').length > modulusCharsMax || String(e ?? '').length > exponentCharsMax)
    throw invalidRequest('an RSA key that verifies tokens must have at most 8192 bits and a public exponent below 2^32');
}

/** Converts a public key in PEM. @throws AccessError `invalid_request` */
export function pemAsJwk(pem: string): JWK {
  if (!/^\s*-----BEGIN (?:PUBLIC KEY|RSA PUBLIC KEY|CERTIFICATE)-----/.test(pem))
    throw invalidRequest('a key that verifies tokens must be a public key in PEM');
  let key: JWK;
  try {
    key = createPublicKey(pem).export({ format: 'jwk' }) as JWK;
  } catch {
    throw invalidRequest('a key that verifies tokens must be a public key in PEM');
  }
  checkNumbers(key);
  return key;
}
