import {
  AccessError,
  changedInert,
  changedSettings,
  conflict,
  displayNameOf,
  equalizeReads,
  given,
  type InertSettings,
  type Issued,
  invalidRequest,
  type Login,
  type LoginGrant,
  LoginRecords,
  loginName,
  type MethodServices,
  newTokenSettings,
  type OpenedMethod,
  policiesOfGroups,
  policyNames,
  refusedBy,
  type StoredMount,
  starsMatch,
  type TokenRegistry,
  type TokenSettings,
  type TokenSettingsChange,
} from '@transitd/access';
import { accessTurns, runInSlices, type Steps, TimeSlice } from '@transitd/event-loop';
import { type RecordClock, withinCidrs } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import type { JWTPayload, JWTVerifyOptions } from 'jose';
import { claimRefused, forgedToken, type JwtKeySource, JwtKeys, jwtAlgorithms, parseKeySet, pemAsJwk } from './keys.ts';

export interface JwtConfig extends JwtKeySource {
  readonly issuer: string;
  readonly algorithms: readonly string[];
  /** Role of a login that does not name a role. */
  readonly defaultRole: string;
  readonly inert: InertSettings;
}

/** Required claims, each with its allowed values. */
export type BoundClaims = Readonly<Record<string, readonly (string | number | boolean)[]>>;

export interface JwtRole {
  /** Allowed audiences, at least one. */
  readonly audiences: readonly string[];
  /** Required subject; empty for any. */
  readonly subject: string;
  /** Name of the claim that contains the user name. */
  readonly userClaim: string;
  readonly boundClaims: BoundClaims;
  /** With `glob`, allowed values may begin or end with `*`. */
  readonly boundClaimsType: 'string' | 'glob';
  /** Names of the claims to copy into the metadata of the token, each with its name in the metadata. */
  readonly claimMappings: Readonly<Record<string, string>>;
  /** Name of the claim that contains the groups of the user; empty for none. */
  readonly groupsClaim: string;
  /** Policies by group. */
  readonly groupPolicies: Readonly<Record<string, readonly string[]>>;
  readonly leewayS: number;
  readonly inert: InertSettings;
  readonly token: TokenSettings;
}

type Changed<T> = { readonly [Name in keyof T]?: T[Name] | undefined };
export type JwtConfigChange = Changed<JwtConfig>;
export type JwtRoleChange = Changed<Omit<JwtRole, 'token'>> & { readonly token: TokenSettingsChange };

const newConfig: JwtConfig = {
  keys: [],
  jwks: '',
  file: '',
  url: '',
  urlCa: '',
  issuer: '',
  algorithms: [],
  defaultRole: '',
  inert: {},
};

const newRole: JwtRole = {
  audiences: [],
  subject: '',
  userClaim: '',
  boundClaims: {},
  boundClaimsType: 'string',
  claimMappings: {},
  groupsClaim: '',
  groupPolicies: {},
  leewayS: 60,
  inert: {},
  token: newTokenSettings,
};

const configName = 'config';
const jwtCharsMax = 16 * 1024;
/** Every login compares them with the claims of its token. */
const boundClaimsCharsMax = 64 * 1024;
const leewaySMax = 300;
const userCharsMax = 256;

/** Logins by a JSON Web Token (RFC 7519) of an external issuer, checked against a role. */
export class JwtLogins implements OpenedMethod {
  readonly roles: LoginRecords<JwtRole>;
  readonly #configs: LoginRecords<JwtConfig>;
  readonly #store: Store;
  readonly #registry: TokenRegistry;
  readonly #keys: JwtKeys;
  readonly #clock: RecordClock;

  constructor({ store, registry, sources, clock }: MethodServices) {
    this.roles = new LoginRecords({ store, kind: 'jwt-role', example: newRole });
    this.#configs = new LoginRecords({ store, kind: 'jwt', example: newConfig });
    this.#store = store;
    this.#registry = registry;
    this.#keys = new JwtKeys({ sources, clock });
    this.#clock = clock;
  }

  /**
   * Returns the configuration of an auth method; undefined before it is written.
   * @throws AccessError `record_unreadable`; StoreError
   */
  async config(mount: StoredMount): Promise<JwtConfig | undefined> {
    return (await this.#configs.find(mount.id, configName))?.value;
  }

  /** Replaces the whole configuration. @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError */
  async configure(mount: StoredMount, change: JwtConfigChange): Promise<void> {
    const config: JwtConfig = { ...newConfig, ...given(change), inert: changedInert({}, change.inert) };
    checkConfig(config);
    await this.#configs.change(mount, configName, () => ({ value: config }));
  }

  /** Creates a role or changes the given fields. @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError */
  async write(mount: StoredMount, name: string, { token, ...change }: JwtRoleChange): Promise<void> {
    await this.roles.change(mount, name, (present) => {
      const role: JwtRole = {
        ...(present ?? newRole),
        ...given(change),
        inert: changedInert(present?.inert ?? {}, change.inert),
        token: changedSettings(present?.token ?? newTokenSettings, token),
      };
      checkRole(role);
      return { value: role };
    });
  }

  /** Logs in. @throws AccessError `invalid_request`, `keys_unavailable`, `too_many_conflicts`; StoreError */
  async login({ mount, path, address }: Login, roleName: string, jwt: string): Promise<Issued> {
    const config = await this.#configs.find(mount.id, configName);
    if (config === undefined) throw invalidRequest('the auth method has no configuration yet');
    const name = loginName(roleName === '' ? config.value.defaultRole : roleName);
    const role = await this.roles.find(mount.id, name);
    await equalizeReads(this.#store, mount, this.roles.pathOf(mount.id, name), role !== undefined);
    // Only callers with a valid token may learn that the role does not exist.
    const claims = await this.#verified(config.value, role?.value, jwt, address);
    if (role === undefined) throw invalidRequest('unknown role', refusedBy('role'));
    await runInSlices(checkClaims(role.value, claims), new TimeSlice(accessTurns));
    const granted = await this.#registry.issue({
      mount,
      settings: role.value.token,
      groups: groupsOf(role.value, claims),
      displayName: `${displayNameOf(mount)}-${userOf(role.value, claims)}`,
      meta: { ...metaOf(role.value, claims), role: name },
      path,
      source: role.condition,
      conditions: [config.condition],
    });
    if (granted === undefined) throw conflict('the auth method', { by: 'another request', outcome: 'no token was created' });
    return granted;
  }

  close(): void {
    this.#keys.clear();
  }

  /** Verifies a token with the configured keys and returns its claims. @param role - undefined when the role does not exist */
  async #verified(config: JwtConfig, role: JwtRole | undefined, jwt: string, address: string): Promise<JWTPayload> {
    if (jwt === '' || jwt.length > jwtCharsMax)
      throw invalidRequest(`the token is missing or longer than ${jwtCharsMax} characters`);
    const { audiences, subject, leewayS } = role ?? newRole;
    const options: JWTVerifyOptions = {
      algorithms: [...config.algorithms],
      issuer: config.issuer,
      requiredClaims: ['exp'],
      clockTolerance: leewayS,
      currentDate: new Date(this.#clock.utcMs()),
      ...(role !== undefined && { audience: [...audiences] }),
      ...(subject !== '' && { subject }),
    };
    // From another address every signed token gets the answer of a forged one, so nobody can test stolen tokens from there.
    const isNear = withinCidrs(role?.token.boundCidrs ?? [], address);
    const claims = await this.#keys.verify(config, jwt, options).catch((error: unknown) => {
      throw isNear || !(error instanceof AccessError && error.code === 'claim_refused')
        ? error
        : forgedToken('token_bound_cidrs');
    });
    if (!isNear) throw forgedToken('token_bound_cidrs');
    if (claims.iat !== undefined && claims.iat > this.#clock.utcMs() / 1000 + leewayS)
      throw claimRefused('its claim "iat" is in the future', 'iat', claims.iat);
    return claims;
  }
}

/** Checks the claims against the role. @throws AccessError `invalid_request` */
function* checkClaims(role: JwtRole, claims: JWTPayload): Steps<void> {
  userOf(role, claims);
  for (const [name, values] of Object.entries(role.boundClaims)) {
    const claim = claimAt(claims, name);
    if (!(yield* hasBoundValue(claim, values, role.boundClaimsType)))
      throw claimRefused(`its claim ${JSON.stringify(name)} does not match the role`, `bound_claims.${name}`, claim);
  }
}

/** @throws AccessError `invalid_request` */
function checkConfig({ keys, jwks, file, url, urlCa, issuer, algorithms }: JwtConfig): void {
  const sources = [keys.length > 0, jwks !== '', file !== '', url !== ''].filter((isGiven) => isGiven).length;
  if (sources !== 1) throw invalidRequest('exactly one of jwt_validation_pubkeys, jwks, jwks_file and jwks_url must be set');
  for (const pem of keys) pemAsJwk(pem);
  if (jwks !== '') parseKeySet(jwks);
  if (url !== '' && (!URL.canParse(url) || new URL(url).protocol !== 'https:'))
    throw invalidRequest('jwks_url must be an https URL');
  if (urlCa !== '' && url === '') throw invalidRequest('jwks_ca_pem requires jwks_url');
  if (issuer === '') throw invalidRequest('bound_issuer must be set');
  if (algorithms.length === 0 || !algorithms.every((name) => jwtAlgorithms.includes(name)))
    throw invalidRequest(`jwt_supported_algs must name some of ${jwtAlgorithms.join(', ')}`);
}

/** @throws AccessError `invalid_request` */
function checkRole({ audiences, userClaim, boundClaims, boundClaimsType, groupPolicies, leewayS }: JwtRole): void {
  if (audiences.length === 0) throw invalidRequest('bound_audiences must be set');
  if (userClaim === '') throw invalidRequest('user_claim must be set');
  if (boundClaimsType !== 'string' && boundClaimsType !== 'glob')
    throw invalidRequest('bound_claims_type must be "string" or "glob"');
  if (JSON.stringify(boundClaims).length > boundClaimsCharsMax)
    throw invalidRequest(`bound_claims must have at most ${boundClaimsCharsMax} characters as JSON`);
  if (leewayS < 0 || leewayS > leewaySMax) throw invalidRequest(`clock_skew_leeway is at most ${leewaySMax}s`);
  for (const policies of Object.values(groupPolicies))
    if (policyNames(policies).includes('root')) throw invalidRequest('auth methods cannot create root tokens');
}

/** Returns a claim by its name. A name that begins with a slash is a JSON Pointer (RFC 6901). */
function claimAt(claims: JWTPayload, name: string): unknown {
  if (!name.startsWith('/')) return Object.hasOwn(claims, name) ? claims[name] : undefined;
  const steps = name
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  let place: unknown = claims;
  for (const step of steps)
    place = typeof place === 'object' && place !== null && Object.hasOwn(place, step) ? Reflect.get(place, step) : undefined;
  return place;
}

/**
 * Returns whether the claim has an allowed value. If the claim is a list, one item with an allowed value is enough. A missing claim
 * has no allowed value.
 */
function* hasBoundValue(claim: unknown, values: readonly (string | number | boolean)[], type: 'string' | 'glob'): Steps<boolean> {
  const exact = new Set<unknown>(values);
  const patterns =
    type === 'glob' ? values.filter((value) => typeof value === 'string').filter((value) => value.includes('*')) : [];
  for (const one of Array.isArray(claim) ? (claim as readonly unknown[]) : [claim]) {
    if (exact.has(one) || (typeof one === 'string' && patterns.some((pattern) => starsMatch(pattern, one)))) return true;
    yield;
  }
  return false;
}

function userOf({ userClaim }: JwtRole, claims: JWTPayload): string {
  const user = claimAt(claims, userClaim);
  if (typeof user !== 'string' || user === '' || user.length > userCharsMax)
    throw claimRefused(`its claim ${JSON.stringify(userClaim)} does not name a user`, 'user_claim', user);
  return user;
}

/** Returns the user's groups to which the role assigns policies, and these policies. */
function groupsOf({ groupsClaim, groupPolicies }: JwtRole, claims: JWTPayload): NonNullable<LoginGrant['groups']> {
  const claimed: unknown = groupsClaim === '' ? [] : claimAt(claims, groupsClaim);
  const listed: readonly unknown[] = Array.isArray(claimed) ? claimed : [claimed];
  const names = [
    ...new Set(listed.filter((group) => typeof group === 'string' && Object.hasOwn(groupPolicies, group))),
  ] as string[];
  return { names, policies: policiesOfGroups(groupPolicies, names) };
}

function metaOf({ claimMappings }: JwtRole, claims: JWTPayload): Record<string, string> {
  const meta: Record<string, string> = {};
  for (const [claim, name] of Object.entries(claimMappings)) {
    const value = claimAt(claims, claim);
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') meta[name] = String(value);
  }
  return meta;
}
