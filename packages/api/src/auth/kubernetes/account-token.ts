import { createPublicKey, type KeyObject } from 'node:crypto';
import { AccessError, invalidRequest, refusedBy } from '@transitd/access';
import { checkJsonLimits, runAtOnce } from '@transitd/event-loop';

/** A service account of Kubernetes. */
export interface ServiceAccount {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** What the claims of a service account's token say. Nothing of it is proven before a review. */
export interface AccountClaims {
  readonly account: ServiceAccount;
  /** Name of the Secret that holds the token; empty for a token without one, such as that of a pod. */
  readonly secretName: string;
  readonly audiences: readonly string[];
}

/** What the configuration and the role expect of the claims. */
interface ExpectedClaims {
  /** One of the token's audiences; empty for any. */
  readonly audience: string;
  /** Empty for any. */
  readonly issuer: string;
  readonly nowMs: number;
}

type Claims = Readonly<Record<string, unknown>>;

/** A token whose form is that of a JWT with a supported algorithm. */
interface AccountToken {
  readonly jwt: string;
  readonly algorithm: string;
  readonly claims: Claims;
}

const jwtCharsMax = 16 * 1024;
/** Tolerated difference between our clock and that of the cluster. */
const leewayS = 60;
/** Limits on the header and on the claims: an object with a few members, of which few are objects. */
const partLimits = {
  depthMax: 8,
  valuesMax: 512,
  containersMax: 128,
  membersMax: () => 64,
  textCharsMax: jwtCharsMax,
  refusal: (reason: string) => tokenRefused(`it has ${reason}`),
};

const rsaAlgorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
/** Algorithms by the curve of the key, in the names of OpenSSL. */
const ecAlgorithms: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' };
/** Asymmetric algorithms only: with a symmetric one, anyone with the published key could sign. */
const algorithms: readonly unknown[] = [...rsaAlgorithms, ...Object.values(ecAlgorithms)];
const rsaBits = { min: 2048, max: 8192 };

/** @param constraint - what refuses the login, for the audit log @param value - the refused value, if the request does not show it */
export const loginRefused = (message: string, constraint: string, value?: unknown): AccessError =>
  new AccessError('login_refused', message, { refusedBy: refusedBy(constraint, value) });
const tokenRefused = (why: string, constraint = 'jwt', value?: unknown): AccessError =>
  loginRefused(`the token is refused: ${why}`, constraint, value);
const claimRefused = (claims: Claims, name: string, constraint = name): AccessError =>
  tokenRefused(`its claim "${name}" is not the expected one`, constraint, claims[name]);

/** Parses a token. Its signature is not checked. @throws AccessError `login_refused` */
export function parseToken(jwt: string): AccountToken {
  if (jwt.length > jwtCharsMax) throw tokenRefused(`it is longer than ${jwtCharsMax} characters`);
  const [, header, payload] = /^([\w-]+)\.([\w-]+)\.[\w-]+$/.exec(jwt) ?? [];
  if (header === undefined || payload === undefined) throw tokenRefused('it is not a signed JWT');
  const { alg } = objectIn(header);
  if (!algorithms.includes(alg)) throw tokenRefused('its algorithm is not supported');
  return { jwt, algorithm: String(alg), claims: objectIn(payload) };
}

/**
 * Parses a part of a token. Refuses a member that an object has twice: the API server, which reviews the token, and the parser here may
 * keep different ones.
 */
function objectIn(part: string): Claims {
  let parsed: unknown;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(part, 'base64url'));
    runAtOnce(checkJsonLimits(text, partLimits));
    parsed = JSON.parse(text);
  } catch (error) {
    throw error instanceof AccessError ? error : tokenRefused('it is not a signed JWT');
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw tokenRefused('it is not a signed JWT');
  if (colonsIn(text) !== membersIn(parsed)) throw tokenRefused('an object in it has a member twice');
  return parsed as Claims;
}

/** Counts the colons outside of strings: one for each member. */
const colonsIn = (text: string): number => text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1;

function membersIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner = Object.values(value).reduce((sum: number, one) => sum + membersIn(one), 0);
  return Array.isArray(value) ? inner : inner + Object.keys(value).length;
}

/** Checks the claims that do not depend on a review. @throws AccessError `login_refused` */
export function checkClaims({ claims }: AccountToken, { audience, issuer, nowMs }: ExpectedClaims): AccountClaims {
  const nowS = nowMs / 1000;
  checkTime(claims, 'exp', (time) => nowS < time + leewayS);
  for (const name of ['nbf', 'iat']) checkTime(claims, name, (time) => time <= nowS + leewayS);
  const audiences = audiencesIn(claims);
  if (audience !== '' && !audiences.includes(audience)) throw claimRefused(claims, 'aud', 'audience');
  if (issuer !== '' && claims['iss'] !== issuer) throw claimRefused(claims, 'iss', 'issuer');
  return { account: accountIn(claims), secretName: textOf(claims['kubernetes.io/serviceaccount/secret.name']), audiences };
}

/** A token that a Secret holds has no times. */
function checkTime(claims: Claims, name: string, isGood: (seconds: number) => boolean): void {
  const time = claims[name];
  if (time !== undefined && !(typeof time === 'number' && isGood(time))) throw claimRefused(claims, name);
}

function audiencesIn(claims: Claims): readonly string[] {
  const { aud = [] } = claims;
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!audiences.every((one) => typeof one === 'string')) throw claimRefused(claims, 'aud', 'audience');
  return audiences;
}

/** Returns the account of a token of a pod, or of one that a Secret holds; these name it in different claims. */
function accountIn(claims: Claims): ServiceAccount {
  const ofPod = claims['kubernetes.io'];
  const { namespace, serviceaccount } = Object(ofPod);
  const { name, uid } = Object(serviceaccount);
  const legacy = 'kubernetes.io/serviceaccount';
  const account =
    ofPod === undefined
      ? {
          namespace: textOf(claims[`${legacy}/namespace`]),
          name: textOf(claims[`${legacy}/service-account.name`]),
          uid: textOf(claims[`${legacy}/service-account.uid`]),
        }
      : { namespace: textOf(namespace), name: textOf(name), uid: textOf(uid) };
  // Names of Kubernetes have none of the colons that separate them in the user name of a review.
  for (const part of [account.namespace, account.name])
    if (!/^[a-z0-9][a-z0-9.-]{0,252}$/.test(part)) throw tokenRefused('it names no service account');
  if (account.uid === '' || account.uid.length > 128) throw loginRefused('could not parse UID from claims', 'jwt');
  return account;
}

const textOf = (claim: unknown): string => (typeof claim === 'string' ? claim : '');

/**
 * Returns a public key in PEM, or that of a certificate.
 * @throws AccessError `invalid_request` for any other text, and for a key that fits no algorithm of tokens
 */
export function publicKeyIn(pem: string): KeyObject {
  // Without the check of the first line, a private key would be accepted, and the configuration shown with it.
  if (/^\s*-----BEGIN (?:PUBLIC KEY|RSA PUBLIC KEY|CERTIFICATE)-----/.test(pem)) {
    try {
      const key = createPublicKey(pem);
      if (algorithmsOf(key).length > 0) return key;
    } catch {
      // refused below
    }
  }
  throw invalidRequest('data does not contain any valid RSA or ECDSA public keys');
}

/** Returns the algorithms whose signatures a key may verify. */
function algorithmsOf({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject): readonly string[] {
  const { namedCurve = '', modulusLength = 0, publicExponent = 0n } = details;
  if (type === 'rsa')
    return modulusLength >= rsaBits.min && modulusLength <= rsaBits.max && publicExponent < 2n ** 32n ? rsaAlgorithms : [];
  const ofCurve = type === 'ec' ? ecAlgorithms[namedCurve] : undefined;
  return ofCurve === undefined ? [] : [ofCurve];
}

/** Returns whether one of the keys has signed the token. */
export async function isSignedBy({ jwt, algorithm }: AccountToken, pems: readonly string[]): Promise<boolean> {
  const { compactVerify, errors } = await import('jose');
  for (const key of pems.map(publicKeyIn)) {
    if (!algorithmsOf(key).includes(algorithm)) continue;
    try {
      await compactVerify(jwt, key, { algorithms: [algorithm] });
      return true;
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error;
    }
  }
  return false;
}
