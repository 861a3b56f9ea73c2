import { createPublicKey } from 'node:crypto';
import {
  createLocalJWKSet,
  errors,
  type JSONWebKeySet,
  type JWK,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose';
import { AccessError, invalidRequest } from '../errors.ts';

/** Where the keys are that sign tokens: exactly one of these is not empty. */
export interface JwtKeySource {
  /** PEM public keys. */
  readonly keys: readonly string[];
  /** A JSON Web Key Set (RFC 7517 §5) as text. */
  readonly jwks: string;
  /** Name of a file in the node's configuration. */
  readonly file: string;
  /** https; it may be empty like the others, as may the next. */
  readonly url: string;
  /** Certificates that the server of `url` must be signed by, in PEM, instead of the usual ones. */
  readonly urlCa: string;
}

/** How the node reads what is not in a record: both give the text of a key set, and bound its time and size themselves. */
export interface KeySources {
  /** @param name - as the configuration has it; undefined when it has none of that name */
  file(name: string): Promise<string | undefined>;
  url(url: string, ca: string): Promise<string>;
}

/** Asymmetric algorithms (RFC 7518 §3.1, RFC 8037, RFC 9864): with a symmetric one, a published key would sign. */
export const jwtAlgorithms: readonly string[] = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'],
  ...['EdDSA', 'Ed25519'],
];

const keysMax = 100;
const keySetCharsMax = 1024 * 1024;
/** How long fetched keys are used, and how soon they may be fetched again for a key that is not among them. */
const [cacheMs, refetchMs] = [5 * 60_000, 30_000];
const sourcesMax = 64;
/** Logins that wait for the keys of one source: a provider that hangs holds up its own logins, and leaves places to the others. */
const waitingMax = 32;

interface Fetched {
  readonly keys: Promise<JSONWebKeySet>;
  readonly atMs: number;
}

/** Keys by their source; fetched ones are kept for a while. */
export class JwtKeys {
  readonly #sources: KeySources;
  readonly #now: () => number;
  readonly #fetched = new Map<string, Fetched>();
  /** Logins that wait, by the name of the source. */
  readonly #waiting = new Map<string, number>();

  constructor({ sources, now }: { readonly sources: KeySources; readonly now: () => number }) {
    this.#sources = sources;
    this.#now = now;
  }

  /**
   * The claims of a token that one of the keys has signed.
   * @throws AccessError `invalid_request` for any other token, `keys_unavailable`, `busy_logins`
   */
  async verify(source: JwtKeySource, jwt: string, options: JWTVerifyOptions): Promise<JWTPayload> {
    try {
      return await claimsOf(jwt, await this.#loaded(source, cacheMs), options);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || (source.url === '' && source.file === '')) throw refusalOf(error);
    }
    // Its signer may have a new key since.
    try {
      return await claimsOf(jwt, await this.#loaded(source, refetchMs), options);
    } catch (error) {
      throw refusalOf(error);
    }
  }

  async #loaded(source: JwtKeySource, ageMsMax: number): Promise<JSONWebKeySet> {
    const keys = this.#keysOf(source, ageMsMax);
    if (!(keys instanceof Promise)) return keys;
    const name = nameOf(source);
    const waiting = this.#waiting.get(name) ?? 0;
    if (waiting >= waitingMax) throw new AccessError('busy_logins', 'too many logins wait for the keys that sign tokens');
    this.#waiting.set(name, waiting + 1);
    try {
      return await keys;
    } finally {
      const left = (this.#waiting.get(name) ?? 0) - 1;
      if (left > 0) this.#waiting.set(name, left);
      else this.#waiting.delete(name);
    }
  }

  #keysOf(source: JwtKeySource, ageMsMax: number): JSONWebKeySet | Promise<JSONWebKeySet> {
    if (source.jwks !== '') return parseKeySet(source.jwks);
    if (source.keys.length > 0) return { keys: source.keys.map(pemAsJwk) };
    const name = nameOf(source);
    const present = this.#fetched.get(name);
    if (present !== undefined && this.#now() - present.atMs < ageMsMax) return present.keys;
    const keys = this.#fetch(source);
    const oldest = this.#fetched.size >= sourcesMax ? this.#fetched.keys().next() : undefined;
    if (oldest?.done === false) this.#fetched.delete(oldest.value);
    const entry = { keys, atMs: this.#now() };
    this.#fetched.set(name, entry);
    // A failure is not kept: the next login asks again.
    keys.catch(() => {
      if (this.#fetched.get(name) === entry) this.#fetched.delete(name);
    });
    return keys;
  }

  async #fetch({ file, url, urlCa }: JwtKeySource): Promise<JSONWebKeySet> {
    try {
      const text = file === '' ? await this.#sources.url(url, urlCa) : await this.#sources.file(file);
      if (text !== undefined) return parseKeySet(text);
    } catch (error) {
      throw new AccessError('keys_unavailable', 'the keys that sign tokens cannot be fetched', { cause: error });
    }
    throw new AccessError('keys_unavailable', 'the configuration of this node has no such file of keys');
  }
}

const nameOf = ({ file, url, urlCa }: JwtKeySource): string => JSON.stringify([file, url, urlCa]);

async function claimsOf(jwt: string, keys: JSONWebKeySet, options: JWTVerifyOptions): Promise<JWTPayload> {
  const getKey: JWTVerifyGetKey = createLocalJWKSet(keys);
  try {
    return (await jwtVerify(jwt, getKey, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    // Keys without names: one of them fits.
    for await (const key of error) {
      try {
        return (await jwtVerify(jwt, key, options)).payload;
      } catch (inner) {
        if (!(inner instanceof errors.JWSSignatureVerificationFailed)) throw inner;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

/** Says by which rule it is refused, and nothing of the token. */
function refusalOf(error: unknown): AccessError {
  if (error instanceof AccessError) return error;
  if (error instanceof errors.JOSEError) return invalidRequest(`the token is refused: ${error.code}`);
  // What is thrown of a key: too short, or on no curve that is known.
  return new AccessError('keys_unavailable', 'a key that checks tokens cannot be used', { cause: error });
}

/** @throws AccessError `invalid_request` */
export function parseKeySet(text: string): JSONWebKeySet {
  if (text.length > keySetCharsMax) throw invalidRequest(`a key set has at most ${keySetCharsMax} characters`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw invalidRequest('a key set is JSON');
  }
  const keys: unknown = Reflect.get(Object(parsed), 'keys');
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > keysMax)
    throw invalidRequest(`a key set has 1 to ${keysMax} keys`);
  for (const key of keys) checkJwk(key);
  return { keys: keys as JWK[] };
}

function checkJwk(key: unknown): void {
  const { kty, d, k } = Object(key) as Readonly<Record<string, unknown>>;
  if (typeof kty !== 'string') throw invalidRequest('a key set holds keys');
  if (kty === 'oct' || d !== undefined || k !== undefined)
    throw invalidRequest('a key set that checks tokens holds public keys only');
}

/** @throws AccessError `invalid_request` */
export function pemAsJwk(pem: string): JWK {
  if (!/^\s*-----BEGIN (?:PUBLIC KEY|RSA PUBLIC KEY|CERTIFICATE)-----/.test(pem))
    throw invalidRequest('a key that checks tokens is a public key in PEM');
  try {
    return createPublicKey(pem).export({ format: 'jwk' }) as JWK;
  } catch {
    throw invalidRequest('a key that checks tokens is a public key in PEM');
  }
}
