import {
  AccessError,
  changedInert,
  changedRole,
  displayNameOf,
  equalizeReads,
  given,
  type Issued,
  invalidRequest,
  type Login,
  type LoginGrant,
  LoginRecords,
  loginName,
  type MethodServices,
  type OpenedMethod,
  policiesOfGroups,
  refusedBy,
  type StoredMount,
  starsMatch,
  type TokenRegistry,
} from '@transitd/access';
import { accessTurns, runInSlices, type Steps, TimeSlice } from '@transitd/event-loop';
import { type RecordClock, withinCidrs } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import type { JWTPayload, JWTVerifyOptions } from 'jose';
import { algorithmsOf, checkConfig, issuerOf, type JwtConfig, type JwtConfigChange, keySourceOf, newConfig } from './config.ts';
import { claimRefused, forgedToken, JwtKeys } from './keys.ts';
import { checkRole, type JwtRole, type JwtRoleChange, newRole } from './role.ts';

const configName = 'config';
const jwtCharsMax = 16 * 1024;
const leewaySDefault = 60;
const userCharsMax = 256;

/** Logins by a JSON Web Token (RFC 7519) of an external issuer, checked against a role. */
export class JwtLogins implements OpenedMethod {
  readonly roles: LoginRecords<JwtRole>;
  readonly #configs: LoginRecords<JwtConfig>;
  readonly #store: Store;
  readonly #registry: TokenRegistry;
  readonly #keys: JwtKeys;
  readonly #clock: RecordClock;

  constructor({ store, registry, sources, waits, clock }: MethodServices) {
    this.roles = new LoginRecords({ store, kind: 'jwt-role', example: newRole });
    this.#configs = new LoginRecords({ store, kind: 'jwt', example: newConfig });
    this.#store = store;
    this.#registry = registry;
    this.#keys = new JwtKeys({ sources, clock, waits });
    this.#clock = clock;
  }

  /**
   * Returns the configuration of an auth method; undefined before it is written.
   * @throws AccessError `record_unreadable`; StoreError
   */
  async config(mount: StoredMount): Promise<JwtConfig | undefined> {
    return (await this.#configs.find(mount.id, configName))?.value;
  }

  /**
   * Replaces the whole configuration. Keys that the method has to find are fetched first, so that a mistake is noticed before the first
   * login.
   * @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError
   */
  async configure(mount: StoredMount, change: JwtConfigChange): Promise<void> {
    const config: JwtConfig = { ...newConfig, ...given(change), inert: changedInert({}, change.inert) };
    const source = checkConfig(config);
    if (source.kind === 'url') await this.#keys.check(source, 'error checking jwks URL');
    if (source.kind === 'discovery') await this.#keys.check(source, 'error checking oidc discovery URL');
    if (source.kind === 'kubernetes') await this.#keys.check(source, 'invalid provider_config');
    await this.#configs.change(mount, configName, () => ({ value: config }));
  }

  /** Creates a role or changes the given fields. @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError */
  async write(mount: StoredMount, name: string, change: JwtRoleChange): Promise<void> {
    await this.roles.change(mount, name, (present = newRole) => {
      const role = changedRole(present, change);
      checkRole(role);
      return { value: role };
    });
  }

  /** Returns the name of the role of a login that names this one, or none; empty for none. @throws StoreError */
  async roleNameOf(mount: StoredMount, named: string): Promise<string> {
    return loginName(named === '' ? ((await this.config(mount))?.defaultRole ?? '') : named);
  }

  /**
   * Logs in.
   * @param name - what {@link roleNameOf} returned
   * @throws AccessError `invalid_request`, `keys_unavailable`, `too_many_conflicts`; StoreError
   */
  async login({ mount, path, address }: Login, name: string, jwt: string): Promise<Issued> {
    const config = await this.#configs.find(mount.id, configName);
    if (config === undefined) throw invalidRequest('the auth method has no configuration yet');
    const role = await this.roles.find(mount.id, name);
    await equalizeReads(this.#store, mount, this.roles.pathOf(mount.id, name), role !== undefined);
    // Only callers with a valid token may learn that the role does not exist.
    const claims = await this.#verified(config.value, role?.value, jwt, address);
    if (role === undefined) throw invalidRequest('unknown role', refusedBy('role'));
    await runInSlices(checkClaims(role.value, claims), new TimeSlice(accessTurns));
    return this.#registry.issueOnce({
      mount,
      settings: role.value.token,
      groups: groupsOf(role.value, claims),
      displayName: `${displayNameOf(mount)}-${userOf(role.value, claims)}`,
      meta: { ...metaOf(role.value, claims), role: name },
      path,
      source: role.condition,
      conditions: [config.condition],
    });
  }

  close(): void {
    this.#keys.clear();
  }

  /** Verifies a token with the configured keys and returns its claims. @param role - undefined when the role does not exist */
  async #verified(config: JwtConfig, role: JwtRole | undefined, jwt: string, address: string): Promise<JWTPayload> {
    if (jwt === '' || jwt.length > jwtCharsMax)
      throw invalidRequest(`the token is missing or longer than ${jwtCharsMax} characters`);
    const { audiences, subject, maxAgeS } = role ?? newRole;
    const leewayS = leewayOf(role ?? newRole);
    const options: JWTVerifyOptions = {
      algorithms: algorithmsOf(config),
      issuer: issuerOf(config),
      requiredClaims: ['exp'],
      clockTolerance: leewayS,
      currentDate: new Date(this.#clock.utcMs()),
      ...(role !== undefined && { audience: [...audiences] }),
      ...(subject !== '' && { subject }),
    };
    // From another address every signed token gets the answer of a forged one, so nobody can test stolen tokens from there.
    const isNear = withinCidrs(role?.token.boundCidrs ?? [], address);
    const claims = await this.#keys.verify(keySourceOf(config), jwt, options).catch((error: unknown) => {
      throw isNear || !(error instanceof AccessError && error.code === 'claim_refused')
        ? error
        : forgedToken('token_bound_cidrs');
    });
    if (!isNear) throw forgedToken('token_bound_cidrs');
    const nowS = this.#clock.utcMs() / 1000;
    if (claims.iat !== undefined && claims.iat > nowS + leewayS)
      throw claimRefused('its claim "iat" is in the future', 'iat', claims.iat);
    const { auth_time: provedS } = claims;
    if (maxAgeS > 0 && !(typeof provedS === 'number' && provedS + maxAgeS + leewayS >= nowS))
      throw claimRefused('its claim "auth_time" is missing, or longer ago than max_age', 'max_age', provedS);
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

/** Returns the tolerated clock skew in seconds. */
const leewayOf = ({ leewayS }: JwtRole): number => (leewayS === 0 ? leewaySDefault : Math.max(leewayS, 0));

const isEnumerable = Object.prototype.propertyIsEnumerable;

/** Returns a member of an object or a list; undefined for what JSON does not name, such as the length of a list. */
const memberNamed = (place: unknown, name: string): unknown =>
  typeof place === 'object' && place !== null && isEnumerable.call(place, name) ? Reflect.get(place, name) : undefined;

/** Returns a claim by its name. A name that begins with a slash is a JSON Pointer (RFC 6901). */
function claimAt(claims: JWTPayload, name: string): unknown {
  if (!name.startsWith('/')) return memberNamed(claims, name);
  const steps = name
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return steps.reduce<unknown>(memberNamed, claims);
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

function userOf({ userClaim, userClaimJsonPointer }: JwtRole, claims: JWTPayload): string {
  const user = (userClaimJsonPointer ? claimAt : memberNamed)(claims, userClaim);
  if (typeof user !== 'string' || user === '' || user.length > userCharsMax)
    throw claimRefused(`its claim ${JSON.stringify(userClaim)} does not name a user`, 'user_claim', user);
  return user;
}

/**
 * Returns the user's groups to which the role assigns policies, and these policies.
 * @throws AccessError `claim_refused` if the token does not list the groups
 */
function groupsOf({ groupsClaim, groupPolicies }: JwtRole, claims: JWTPayload): NonNullable<LoginGrant['groups']> {
  const claimed: unknown = groupsClaim === '' ? [] : (claimAt(claims, groupsClaim) ?? undefined);
  if (claimed === undefined) throw claimRefused(`its claim ${JSON.stringify(groupsClaim)} is missing`, 'groups_claim', claimed);
  const listed: readonly unknown[] = Array.isArray(claimed) ? claimed : [claimed];
  const groups = listed.filter((group) => typeof group === 'string');
  if (groups.length < listed.length)
    throw claimRefused(`its claim ${JSON.stringify(groupsClaim)} is not a list of groups`, 'groups_claim', claimed);
  const names = [...new Set(groups.filter((group) => Object.hasOwn(groupPolicies, group)))];
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
