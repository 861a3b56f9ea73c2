import {
  type AccessError,
  changedRole,
  checkCertificates,
  displayNameOf,
  given,
  type Issued,
  invalidRequest,
  isRoleName,
  type Kubernetes,
  type Login,
  LoginRecords,
  loginName,
  type MethodServices,
  type OpenedMethod,
  type OutsideWaits,
  refusedBy,
  type StoredMount,
  starsMatch,
  type TokenRegistry,
} from '@transitd/access';
import { callerGroup, type RecordClock, withinCidrs } from '@transitd/process';
import {
  type AccountClaims,
  checkClaims,
  isSignedBy,
  loginRefused,
  parseToken,
  publicKeyIn,
  type ServiceAccount,
} from './account-token.ts';
import {
  type KubernetesConfig,
  type KubernetesConfigChange,
  type KubernetesRole,
  type KubernetesRoleChange,
  newConfig,
  newRole,
} from './fields.ts';
import { checkReview, notReviewed, permissionDenied, reviewOf, reviewUrl } from './token-review.ts';

const configName = 'config';
/** Issuer of an API server whose operator has set none. */
const issuerDefault = 'kubernetes/serviceaccount';
/** Every login tries each of them. */
const pemKeysMax = 16;
/** Longest name in an error text: tokens are longer. */
const shownCharsMax = 24;

/** Logins by a token of a service account of Kubernetes, which the API server of its cluster reviews. */
export class KubernetesLogins implements OpenedMethod {
  readonly roles: LoginRecords<KubernetesRole>;
  readonly #configs: LoginRecords<KubernetesConfig>;
  readonly #registry: TokenRegistry;
  readonly #kubernetes: Kubernetes;
  readonly #clock: RecordClock;
  readonly #waits: OutsideWaits;

  constructor({ store, registry, kubernetes, waits, clock }: MethodServices) {
    this.roles = new LoginRecords({ store, kind: 'role', example: newRole });
    this.#configs = new LoginRecords({ store, kind: 'kubernetes', example: newConfig });
    this.#registry = registry;
    this.#kubernetes = kubernetes;
    this.#waits = waits;
    this.#clock = clock;
  }

  /**
   * Returns the configuration of an auth method; undefined before it is written.
   * @throws AccessError `record_unreadable`; StoreError
   */
  async config(mount: StoredMount): Promise<KubernetesConfig | undefined> {
    return (await this.#configs.find(mount.id, configName))?.value;
  }

  /**
   * Replaces the whole configuration.
   * @throws AccessError `invalid_request`, `review_unavailable` if the pod's files cannot be read, `too_many_conflicts`; StoreError
   */
  async configure(mount: StoredMount, change: KubernetesConfigChange): Promise<void> {
    const config: KubernetesConfig = { ...newConfig, ...given(change) };
    const url = checkConfig(config);
    if (this.#caFor(config, url) === undefined)
      throw invalidRequest('kubernetes_ca_cert must be set: the active node runs in no pod with a service account');
    await this.#configs.change(mount, configName, () => ({ value: config }));
  }

  /**
   * Creates a role or changes the given fields. Returns warnings.
   * @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError
   */
  async write(mount: StoredMount, name: string, change: KubernetesRoleChange): Promise<readonly string[]> {
    let audience = '';
    await this.roles.change(mount, name, (present = newRole) => {
      const role = changedRole(present, change);
      checkRole(role);
      audience = role.audience;
      return { value: role };
    });
    return audience === '' ? ['this role has no audience: it accepts tokens that were made for other services'] : [];
  }

  /**
   * Logs in.
   * @throws AccessError `invalid_request`, `login_refused`, `review_unavailable`, `busy_logins`, `too_many_conflicts`; StoreError
   */
  async login({ mount, path, address }: Login, roleName: string, jwt: string): Promise<Issued> {
    if (roleName === '') throw invalidRequest('missing role');
    if (jwt === '') throw invalidRequest('missing jwt');
    const name = loginName(roleName);
    const role = await this.roles.find(mount.id, name);
    if (role === undefined) throw noSuchRole(roleName);
    if (!withinCidrs(role.value.token.boundCidrs, address)) throw permissionDenied('token_bound_cidrs');
    const config = await this.#configs.find(mount.id, configName);
    if (config === undefined) throw invalidRequest('could not load backend configuration');
    const claims = await this.#claims(config.value, role.value, jwt);
    checkAccount(role.value, claims.account);
    const review = (): Promise<void> => this.#review(config.value, role.value, jwt, claims);
    await this.#waits.run(
      { server: mount.id, caller: callerGroup(address) },
      'too many logins wait for the Kubernetes API server',
      review,
    );
    const { namespace, name: account, uid } = claims.account;
    return this.#registry.issueOnce({
      mount,
      settings: role.value.token,
      displayName: `${displayNameOf(mount)}-${namespace}-${account}`,
      meta: {
        role: name,
        service_account_name: account,
        service_account_namespace: namespace,
        service_account_secret_name: claims.secretName,
        service_account_uid: uid,
      },
      path,
      source: role.condition,
      conditions: [config.condition],
    });
  }

  close(): void {
    // A review in progress ends by itself, and its login finds the records closed.
  }

  async #claims(config: KubernetesConfig, { audience }: KubernetesRole, jwt: string): Promise<AccountClaims> {
    const token = parseToken(jwt);
    if (config.pemKeys.length > 0 && !(await isSignedBy(token, config.pemKeys))) throw permissionDenied('signature');
    const issuer = config.disableIssValidation ? '' : config.issuer || issuerDefault;
    return checkClaims(token, { audience, issuer, nowMs: this.#clock.utcMs() });
  }

  async #review(config: KubernetesConfig, { audience }: KubernetesRole, jwt: string, claims: AccountClaims): Promise<void> {
    const url = urlOf(config);
    const ca = this.#caFor(config, url);
    if (ca === undefined) throw notReviewed('this node runs in no pod with a service account; set kubernetes_ca_cert');
    const token = config.tokenReviewerJwt || this.#podFile(config, 'token')?.trim() || jwt;
    const audiences = audience === '' ? claims.audiences : [audience];
    const json = reviewOf(jwt, audiences);
    const answer = await this.#kubernetes.post(url, { ca, token, json }).catch((error: unknown) => {
      throw notReviewed(reasonOf(error), { cause: error });
    });
    checkReview(answer, claims, audiences);
  }

  /** Returns the CA certificates for the API server, empty for the default ones; undefined if they are those of a pod and this is none. */
  #caFor(config: KubernetesConfig, url: string): string | undefined {
    const { kubernetesCaCert: ca, disableLocalCaJwt: isAlone } = config;
    return ca !== '' || isAlone || url.startsWith('http:') ? ca : this.#podFile(config, 'ca.crt');
  }

  #podFile({ disableLocalCaJwt: isAlone }: KubernetesConfig, name: 'ca.crt' | 'token'): string | undefined {
    try {
      return isAlone ? undefined : this.#kubernetes.podFile(name);
    } catch (error) {
      throw notReviewed(`${name} of the service account of this pod cannot be read: ${reasonOf(error)}`, { cause: error });
    }
  }
}

/** Returns the code of an error, which contains no address, or its message if it has none. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason';
  return (error as NodeJS.ErrnoException).code ?? error.message;
}

function noSuchRole(name: string): AccessError {
  const shown = isRoleName(name) && name.length <= shownCharsMax ? ` "${name}"` : '';
  return invalidRequest(`invalid role name${shown}`, refusedBy('role'));
}

/** @throws AccessError `login_refused` */
function checkAccount(role: KubernetesRole, { namespace, name }: ServiceAccount): void {
  if (!role.boundServiceAccountNames.some((pattern) => starsMatch(pattern, name)))
    throw loginRefused('service account name not authorized', 'bound_service_account_names', name);
  if (!role.boundServiceAccountNamespaces.some((pattern) => starsMatch(pattern, namespace)))
    throw loginRefused('namespace not authorized', 'bound_service_account_namespaces', namespace);
}

/** Returns the URL of token reviews. @throws AccessError `invalid_request` */
function urlOf({ kubernetesHost: host }: KubernetesConfig): string {
  if (host === '') throw invalidRequest('no host provided');
  const url = reviewUrl(host);
  if (url === undefined)
    throw invalidRequest('kubernetes_host must be a host, a host and a port, or an https URL; http only on loopback');
  return url;
}

/** Returns the URL of token reviews. @throws AccessError `invalid_request` */
function checkConfig(config: KubernetesConfig): string {
  const { kubernetesCaCert: ca, tokenReviewerJwt: token, pemKeys } = config;
  const url = urlOf(config);
  checkCertificates('kubernetes_ca_cert', ca);
  // A bearer token of RFC 6750 §2.1.
  if (!/^[\w.~+/-]*=*$/.test(token)) throw invalidRequest('token_reviewer_jwt must be a token');
  if (pemKeys.length > pemKeysMax) throw invalidRequest(`pem_keys must have at most ${pemKeysMax} keys`);
  for (const pem of pemKeys) publicKeyIn(pem);
  return url;
}

/** @throws AccessError `invalid_request` */
function checkRole({ boundServiceAccountNames: names, boundServiceAccountNamespaces: namespaces }: KubernetesRole): void {
  if (names.length === 0) throw invalidRequest('"bound_service_account_names" can not be empty');
  if (namespaces.length === 0)
    throw invalidRequest(
      '"bound_service_account_namespaces" can not be empty if "bound_service_account_namespace_selector" is not set',
    );
  for (const patterns of [names, namespaces])
    if (patterns.length > 1 && patterns.includes('*')) throw invalidRequest('can not mix "*" with values');
}
