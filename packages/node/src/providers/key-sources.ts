import type { FetchedKeys, KeySources, Kubernetes } from '@transitd/access';
import { addressText } from '@transitd/configuration';
import { checkJsonLimits, runAtOnce } from '@transitd/event-loop';
import { type Logger, LogLimit, readRegularFile, reasonOf } from '@transitd/process';
import { deadline, fetchText, type TextRequest } from './fetch-text.ts';

const fileBytesMax = 1024 * 1024;
/** The API server offers its key set only under the type of RFC 7517 §8.5.2. */
const headers = { Accept: 'application/jwk-set+json, application/json' };

interface KeySourcesOptions {
  /** Paths of the key files in the configuration, by name. */
  readonly files: Readonly<Record<string, string>>;
  readonly log: Logger;
  readonly podFile: Kubernetes['podFile'];
  /** The environment of the process by default. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Fetches the key sets for `jwt` logins, and logs the providers that give none. */
export function keySources({ files, log, podFile, env }: KeySourcesOptions): KeySources {
  const limited = new LogLimit({ log });
  return {
    fetch: async (source) => {
      const common = { headers, signal: deadline() };
      switch (source.kind) {
        case 'file':
          return Object.hasOwn(files, source.name)
            ? readRegularFile(files[source.name] ?? '', fileBytesMax).toString('utf8')
            : undefined;
        case 'url':
          return fetchText({ ...common, url: source.url, ca: source.ca, hosts: 'any' });
        case 'discovery':
          return discovered(source, common);
        case 'kubernetes': {
          // Not by discovery: the token must reach no address that comes out of a document.
          const { apiServer, ca, token } = readPod(podFile, env);
          const authorized = { ...headers, Authorization: `Bearer ${token}` };
          return fetchText({ ...common, url: `${apiServer}/openid/v1/jwks`, ca, hosts: 'any', headers: authorized });
        }
      }
    },
    failed: (source, error) => {
      const provider = providerOf(source);
      limited.write('warn', provider, { provider, reason: reasonOf(error) }, 'could not get the keys that verify tokens');
    },
  };
}

/** A host that only the document names must be that of the issuer, or public: the operator has named no other. */
async function discovered(
  { url, ca }: FetchedKeys & { readonly kind: 'discovery' },
  common: Pick<TextRequest, 'headers' | 'signal'>,
): Promise<string> {
  const keysUrl = keySetUrl(await fetchText({ ...common, url: documentUrl(url), ca, hosts: 'any' }), url);
  const hosts = new URL(keysUrl).hostname === new URL(url).hostname ? 'any' : 'public';
  return fetchText({ ...common, url: keysUrl, ca, hosts });
}

/** Returns the name of a source in the log. A path or a query of a URL may be secret. */
function providerOf(source: FetchedKeys): string {
  switch (source.kind) {
    case 'file':
      return source.name;
    case 'url':
    case 'discovery':
      return new URL(source.url).origin;
    case 'kubernetes':
      return source.kind;
  }
}

/** Limits on the text of a discovery document, checked before it is parsed: some sixty members, most of them texts or short lists. */
const documentLimits = {
  depthMax: 8,
  valuesMax: 8192,
  containersMax: 1024,
  membersMax: () => 256,
  textCharsMax: 64 * 1024,
  refusal: (reason: string) => new Error(`the discovery document has ${reason}`),
};

/** Returns the address of the document of an issuer (OpenID Connect Discovery 1.0 §4). */
export const documentUrl = (issuer: string): string => `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;

/** Returns the address of the key set that the document of an issuer names. @throws Error */
export function keySetUrl(document: string, issuer: string): string {
  runAtOnce(checkJsonLimits(document, documentLimits));
  let parsed: unknown;
  try {
    parsed = JSON.parse(document);
  } catch {
    throw new Error('the discovery document is not JSON');
  }
  const { issuer: named, jwks_uri: url } = Object(parsed) as Readonly<Record<string, unknown>>;
  // Otherwise one provider could pass its keys off as those of another (§4.3).
  if (named !== issuer) throw new Error('the discovery document has another issuer');
  if (typeof url !== 'string' || !URL.canParse(url) || new URL(url).protocol !== 'https:')
    throw new Error('the discovery document has no jwks_uri with https');
  return url;
}

/** What a pod of Kubernetes has to call the API server of its cluster. */
interface Pod {
  /** `https://HOST:PORT` */
  readonly apiServer: string;
  /** CA certificates of the API server in PEM. */
  readonly ca: string;
  /** Token of the pod's service account. */
  readonly token: string;
}

/** Reads them as they are now. @throws Error that names what is missing; errors of the file system */
export function readPod(podFile: Kubernetes['podFile'], env: Readonly<Record<string, string | undefined>> = process.env): Pod {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = env;
  if (host === '' || port === '')
    throw new Error('this node runs in no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set');
  const [ca, token] = [podFile('ca.crt'), podFile('token')];
  if (ca === undefined || token === undefined) throw new Error('the pod of this node has no service account');
  return { apiServer: `https://${addressText({ host, port })}`, ca, token: token.trim() };
}
