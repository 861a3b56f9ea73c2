import * as http from 'node:http';
import * as https from 'node:https';

/** Certificate authorities of the servers, in PEM; undefined means Node's default authorities. */
export type Authority = string | undefined;

/** One measured server, and the calls that prepare its rows. */
export class ApiServer {
  readonly name: string;
  readonly url: string;
  readonly token: string;
  /** Processes whose CPU time and memory are read: all nodes of its cluster. */
  readonly pids: readonly number[];
  readonly authority: Authority;
  readonly #agent: http.Agent;
  /** Mounts and keys that exist, so that each is created once. */
  readonly #created: Map<string, Promise<unknown>>;

  constructor(server: {
    readonly name: string;
    readonly url: string;
    readonly token: string;
    readonly pids: readonly number[];
    readonly authority?: Authority;
    /** Another node of the same cluster, which has the same mounts and keys. */
    readonly sameAs?: ApiServer | undefined;
  }) {
    this.name = server.name;
    this.url = server.url;
    this.token = server.token;
    this.pids = server.pids;
    this.#created = server.sameAs === undefined ? new Map() : server.sameAs.#created;
    this.authority = server.authority;
    const options = { keepAlive: true, maxSockets: 16 };
    this.#agent = server.url.startsWith('https:')
      ? new https.Agent({ ...options, ca: server.authority })
      : new http.Agent(options);
  }

  /** Returns another server at the same address with the same token. */
  with(other: { readonly name: string; readonly pids: readonly number[]; readonly sameAs?: ApiServer | undefined }): ApiServer {
    const { url, token, authority } = this;
    return new ApiServer({ url, token, authority, ...other });
  }

  /** Calls a path below `/v1/`. @throws Error unless the status is 2xx */
  call(method: string, path: string, body?: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const { request } = this.url.startsWith('https:') ? https : http;
      const headers = { ...(this.token !== '' && { 'x-vault-token': this.token }), 'content-type': 'application/json' };
      const sent = request(`${this.url}/v1/${path}`, { method, headers, agent: this.#agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const status = response.statusCode ?? 0;
          if (status < 200 || status > 299) reject(new Error(`${method} ${path}: ${status} ${text.slice(0, 200)}`));
          else resolve(text === '' ? {} : JSON.parse(text));
        });
      });
      sent.on('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /** Sends the request the first time. A later call for the same path waits for the first one. */
  once(path: string, body: unknown): Promise<unknown> {
    let created = this.#created.get(path);
    if (created === undefined) {
      created = this.call('POST', path, body);
      this.#created.set(path, created);
    }
    return created;
  }

  /** Removes the mounts that `once` created, with their keys, and closes the connections. */
  async close(): Promise<void> {
    for (const path of this.#created.keys())
      if (path.startsWith('sys/mounts/')) await this.call('DELETE', path).catch(() => undefined);
    this.#agent.destroy();
  }
}

/** Returns the value at a path such as `data.keys` of a JSON body, or undefined. */
export function valueAt(body: unknown, path: string): unknown {
  let place = body;
  for (const step of path.split('.')) place = typeof place === 'object' && place !== null ? Reflect.get(place, step) : undefined;
  return place;
}
