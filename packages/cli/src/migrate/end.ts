import { RefusedError, TransitdClient } from '@transitd/client';
import { StartError } from '@transitd/process';
import type { EndKind } from './method.ts';
import { type SeenKey, seenKey } from './source-key.ts';

/** Settings of a mount that concern transit. */
export interface MountSeen {
  readonly path: string;
  readonly description: string;
  /** Seconds; 0 means the default of the service. */
  readonly defaultTtlS: number;
  readonly maxTtlS: number;
  /** Undefined if the service has no such setting: Vault and OpenBao always write `vault`. */
  readonly ciphertextPrefix: string | undefined;
  readonly disableUpsert: boolean;
  readonly cacheSize: number;
}

/** One end of a move: a transitd, Vault or OpenBao, with a token. */
export interface End extends EndKind {
  readonly client: TransitdClient;
  readonly address: string;
  readonly clusterId: string;
  readonly version: string;
}

export interface EndOptions {
  readonly addresses: readonly string[];
  readonly token: string;
  readonly namespace?: string | undefined;
  /** Sends requests with the settings of TLS. */
  readonly fetch: typeof fetch;
}

/** Sends the headers of the client under the names that Vault and OpenBao read as well. */
const asVault =
  (send: typeof fetch): typeof fetch =>
  (input, init) => {
    const headers = new Headers(init?.headers);
    for (const [own, theirs] of [
      ['X-Service-Token', 'X-Vault-Token'],
      ['X-Service-Namespace', 'X-Vault-Namespace'],
    ] as const) {
      const value = headers.get(own);
      headers.delete(own);
      if (value !== null) headers.set(theirs, value);
    }
    return send(input, { ...init, headers });
  };

/** Connects to one end and finds out which service it is. @throws StartError for an invalid address, or a sealed service */
export async function openEnd({ addresses, token, namespace, fetch: send }: EndOptions, what: 'source' | 'target'): Promise<End> {
  let client: TransitdClient;
  try {
    client = new TransitdClient({ addresses, token, fetch: asVault(send), ...(namespace !== undefined && { namespace }) });
  } catch {
    throw new StartError(`the address of the ${what} is not of the form https://host:port`);
  }
  const health = await client.sys.health();
  if (health.sealed || !health.initialized)
    throw new StartError(`the ${what} is ${health.initialized ? 'sealed: unseal it' : 'not initialized'}`);
  const own = await isOwn(client);
  return { client, own, address: addresses[0] ?? '', clusterId: health.cluster_id ?? '', version: health.version };
}

/**
 * Whether the service is transitd: only its mounts have a prefix of ciphertexts, and only it can be without any engine, since the peers
 * always have a cubbyhole. False without the right to list mounts.
 */
async function isOwn(client: TransitdClient): Promise<boolean> {
  const mounts = (await unlessRefused(client.sys.mounts()))?.data;
  if (mounts === undefined) return false;
  const hasPrefix = Object.values(mounts).some(({ config }) => config?.['ciphertext_prefix'] !== undefined);
  return hasPrefix || Object.keys(mounts).every((path) => path === 'sys/');
}

/** Returns undefined if the service refuses the request: no right, no such path. Rethrows failures of the server. */
export async function unlessRefused<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof RefusedError && error.status < 500) return undefined;
    throw error;
  }
}

/** Returns the transit mounts; undefined if the token may not list mounts. */
export async function transitMounts({ client }: End): Promise<readonly MountSeen[] | undefined> {
  const answer = await unlessRefused(client.sys.mounts());
  if (answer === undefined) return undefined;
  const transit = Object.entries(answer.data ?? {}).filter(([, mount]) => mount?.type === 'transit');
  return Promise.all(
    transit.map(async ([name, { description, config }]) => {
      const path = name.replace(/\/+$/, '');
      const [keys, cache] = await Promise.all([
        unlessRefused(client.request<{ data: { disable_upsert?: boolean } }>('GET', `${path}/config/keys`)),
        unlessRefused(client.request<{ data: { size?: number } }>('GET', `${path}/cache-config`)),
      ]);
      const prefix = config['ciphertext_prefix'];
      return {
        path,
        description,
        defaultTtlS: Number(config['default_lease_ttl'] ?? 0),
        maxTtlS: Number(config['max_lease_ttl'] ?? 0),
        ciphertextPrefix: typeof prefix === 'string' ? prefix : undefined,
        disableUpsert: keys?.data?.disable_upsert === true,
        cacheSize: Number(cache?.data?.size ?? 0),
      };
    }),
  );
}

/** Returns the names of the keys of a mount; empty without keys. @throws RefusedError */
export async function keyNames({ client }: End, mount: string): Promise<readonly string[]> {
  try {
    const { keys } = (await client.transit(mount).keys()).data;
    // OpenBao lists the folder of the wrapping key.
    return keys.filter((name) => !name.endsWith('/'));
  } catch (error) {
    if (error instanceof RefusedError && error.status === 404) return [];
    throw error;
  }
}

/** Reads a key; undefined if it does not exist. @throws RefusedError */
export async function readKey({ client }: End, mount: string, name: string): Promise<SeenKey | undefined> {
  try {
    return seenKey(name, (await client.transit(mount).key(name)).data);
  } catch (error) {
    if (error instanceof RefusedError && error.status === 404) return undefined;
    throw error;
  }
}
