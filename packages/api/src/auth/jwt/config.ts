import { checkCertificates, type InertSettings, invalidRequest } from '@transitd/access';
import { type JwtKeySource, jwtAlgorithms, keysMax, parseKeySet, pemAsJwk } from './keys.ts';

/** The configuration of an auth method. Exactly one source of keys is set. */
export interface JwtConfig {
  /** PEM public keys. */
  readonly keys: readonly string[];
  /** A JSON Web Key Set (RFC 7517 §5) as text. */
  readonly jwks: string;
  /** Name of a key file in the node's configuration. */
  readonly file: string;
  /** An https URL of a key set. */
  readonly url: string;
  /** CA certificates in PEM for the server of `url`; empty for the default ones. */
  readonly urlCa: string;
  /** URL of an issuer with a discovery document (OpenID Connect Discovery 1.0). */
  readonly discoveryUrl: string;
  /** CA certificates in PEM for the servers of the document and of its key set; empty for the default ones. */
  readonly discoveryCa: string;
  /** Empty for none. */
  readonly provider: '' | 'kubernetes';
  /** Empty for `discoveryUrl`. */
  readonly issuer: string;
  /** Empty for all of `jwtAlgorithms`. */
  readonly algorithms: readonly string[];
  /** Role of a login that does not name a role. */
  readonly defaultRole: string;
  readonly inert: InertSettings;
}

export const newConfig: JwtConfig = {
  keys: [],
  jwks: '',
  file: '',
  url: '',
  urlCa: '',
  discoveryUrl: '',
  discoveryCa: '',
  provider: '',
  issuer: '',
  algorithms: [],
  defaultRole: '',
  inert: {},
};

/** Returns the required issuer. */
export const issuerOf = ({ issuer, discoveryUrl }: JwtConfig): string => (issuer === '' ? discoveryUrl : issuer);

/** Returns the accepted algorithms. */
export const algorithmsOf = ({ algorithms }: JwtConfig): string[] => [...(algorithms.length === 0 ? jwtAlgorithms : algorithms)];

/** Returns the source of the keys. @throws AccessError `invalid_request` if there is none or more than one */
export function keySourceOf(config: JwtConfig): JwtKeySource {
  const { keys, jwks, file, url, urlCa, discoveryUrl, discoveryCa, provider } = config;
  const sources: readonly (readonly [field: string, isSet: boolean, source: JwtKeySource])[] = [
    ['jwt_validation_pubkeys', keys.length > 0, { kind: 'keys', keys }],
    ['jwks', jwks !== '', { kind: 'jwks', jwks }],
    ['jwks_file', file !== '', { kind: 'file', name: file }],
    ['jwks_url', url !== '', { kind: 'url', url, ca: urlCa }],
    ['oidc_discovery_url', discoveryUrl !== '', { kind: 'discovery', url: discoveryUrl, ca: discoveryCa }],
    ['provider_config', provider !== '', { kind: 'kubernetes' }],
  ];
  const [only, ...more] = sources.filter(([, isSet]) => isSet);
  if (only !== undefined && more.length === 0) return only[2];
  const asked = sources.map(([field]) => field).join(', ');
  const found = only === undefined ? '' : `, not ${[only, ...more].map(([field]) => field).join(' and ')}`;
  throw invalidRequest(`exactly one of ${asked} must be set${found}`);
}

/** Returns the source of the keys of a valid configuration. @throws AccessError `invalid_request` */
export function checkConfig(config: JwtConfig): JwtKeySource {
  const { keys, jwks, url, urlCa, discoveryUrl, discoveryCa, algorithms } = config;
  const source = keySourceOf(config);
  if (keys.length > keysMax) throw invalidRequest(`jwt_validation_pubkeys must have at most ${keysMax} keys`);
  for (const pem of keys) pemAsJwk(pem);
  if (jwks !== '') parseKeySet(jwks);
  if (url !== '' && !isHttps(url)) throw invalidRequest('jwks_url must be an https URL');
  if (urlCa !== '' && url === '') throw invalidRequest('jwks_ca_pem requires jwks_url');
  checkCertificates('jwks_ca_pem', urlCa);
  if (discoveryUrl !== '' && !isIssuer(discoveryUrl))
    throw invalidRequest('oidc_discovery_url must be an https URL without user, query and fragment');
  if (discoveryCa !== '' && discoveryUrl === '') throw invalidRequest('oidc_discovery_ca_pem requires oidc_discovery_url');
  checkCertificates('oidc_discovery_ca_pem', discoveryCa);
  if (issuerOf(config) === '') throw invalidRequest('bound_issuer must be set');
  if (!algorithms.every((name) => jwtAlgorithms.includes(name)))
    throw invalidRequest(`jwt_supported_algs must name some of ${jwtAlgorithms.join(', ')}`);
  return source;
}

const isHttps = (url: string): boolean => URL.canParse(url) && new URL(url).protocol === 'https:';

/** OpenID Connect Discovery 1.0 §3. */
const isIssuer = (url: string): boolean =>
  isHttps(url) && !/[?#]/.test(url) && new URL(url).username + new URL(url).password === '';
