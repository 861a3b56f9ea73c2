import type { FetchedKeys, KeySources, Kubernetes } from '@transitd/access';
import { type Logger, LogLimit, readRegularFile, reasonOf } from '@transitd/process';
import { documentUrl, keySetUrl } from './discovery.ts';
import { deadline, fetchText, type TextRequest } from './fetch-text.ts';
import { readPod } from './pod.ts';

const fileBytesMax = 1024 * 1024;
/** The API server offers its key set only under the type of RFC 7517 §8.5.2. */
const headers = { Accept: 'application/jwk-set+json, application/json' };

export interface KeySourcesOptions {
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
