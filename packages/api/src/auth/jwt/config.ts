import { type Changed, checkCertificates, type InertSettings, invalidRequest } from '@transitd/access';
import { any, type FieldSchema, text, texts, unsupportedField } from '@transitd/http';
import { inert } from '../../operation/inert-fields.ts';
import { newRecord, type RecordOf } from '../../operation/kept-fields.ts';
import { urlSpellings } from '../../operation/spellings.ts';
import { type JwtKeySource, jwtAlgorithms, keysMax, parseKeySet, pemAsJwk } from './keys.ts';

const onlyJwt = 'logins in a browser do not exist';

/** Settings of the configuration that cannot be set. */
export const unsupportedOfConfig = {
  jwks_pairs: unsupportedField('any', 'a method has one source of keys'),
  oidc_client_id: unsupportedField('string', onlyJwt),
  oidc_client_secret: unsupportedField('string', onlyJwt),
  oidc_response_mode: unsupportedField('string', onlyJwt),
  oidc_response_types: unsupportedField('strings', onlyJwt),
} as const satisfies FieldSchema;

/** Settings that matter only to logins in a browser, which do not exist here. */
export const inertOfConfig = { namespace_in_state: inert('bool', { default: true }) } as const satisfies FieldSchema;

export const configFields = {
  jwt_validation_pubkeys: any(
    'Public keys in PEM. Set exactly one source of keys: this, `jwks`, `jwks_file`, `jwks_url`, `oidc_discovery_url` or `provider_config`',
    { shape: { type: 'array', items: { type: 'string' } }, property: 'keys' },
  ),
  jwks: any('JSON Web Key Set, as an object or as JSON text', { shape: { type: ['object', 'string'] } }),
  jwks_file: text('Name of a key set in the configuration file of the node', { property: 'file' }),
  jwks_url: text('HTTPS URL of a key set', { spellings: urlSpellings, property: 'url' }),
  jwks_ca_pem: text('CA certificates in PEM, to verify the server of `jwks_url`', { property: 'urlCa' }),
  oidc_discovery_url: text('HTTPS URL of an issuer: its discovery document, which must name this issuer, names the key set', {
    spellings: urlSpellings,
    property: 'discoveryUrl',
  }),
  oidc_discovery_ca_pem: text('CA certificates in PEM, to verify the servers of the discovery document and of its key set', {
    property: 'discoveryCa',
  }),
  provider_config: any('Its `provider` is `kubernetes`: the keys are those of the Kubernetes cluster in which the nodes run', {
    shape: { type: 'object', properties: { provider: { const: 'kubernetes' } } },
    property: 'provider',
  }),
  bound_issuer: text('Required `iss` claim; `oidc_discovery_url` if omitted', { property: 'issuer' }),
  jwt_supported_algs: texts('Accepted signature algorithms; all asymmetric ones if omitted', { property: 'algorithms' }),
  default_role: text('Role for logins that name no role'),
  ...inertOfConfig,
  ...unsupportedOfConfig,
} as const satisfies FieldSchema;

/** The configuration of an auth method. Exactly one source of keys is set. */
export interface JwtConfig extends RecordOf<typeof configFields> {
  readonly keys: readonly string[];
  readonly jwks: string;
  readonly provider: '' | 'kubernetes';
  readonly inert: InertSettings;
}

export type JwtConfigChange = Changed<JwtConfig>;

export const newConfig: JwtConfig = { ...newRecord(configFields), keys: [], jwks: '', provider: '', inert: {} };

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
