import type { FetchedKeys, KeySources, Kubernetes } from '@transitd/access';
import { type Logger, LogLimit, readRegularFile, reasonOf } from '@transitd/process';
import { documentUrl, keySetUrl } from './discovery.ts';
import { fetchText } from './fetch-text.ts';
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
      switch (source.kind) {
        case 'file':
          return Object.hasOwn(files, source.name)
            ? readRegularFile(files[source.name] ?? '', fileBytesMax).toString('utf8')
            : undefined;
        case 'url':
          return fetchText({ url: source.url, ca: source.ca, hosts: 'any', headers });
        case 'discovery':
          return discovered(source);
        case 'kubernetes': {
          // Not by discovery: the token must reach no address that comes out of a document.
          const { apiServer, ca, token } = readPod(podFile, env);
          const authorized = { ...headers, Authorization: `Bearer ${token}` };
          return fetchText({ url: `${apiServer}/openid/v1/jwks`, ca, hosts: 'any', headers: authorized });
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
async function discovered({ url, ca }: FetchedKeys & { readonly kind: 'discovery' }): Promise<string> {
  const keysUrl = keySetUrl(await fetchText({ url: documentUrl(url), ca, hosts: 'any', headers }), url);
  const hosts = new URL(keysUrl).hostname === new URL(url).hostname ? 'any' : 'public';
  return fetchText({ url: keysUrl, ca, hosts, headers });
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
