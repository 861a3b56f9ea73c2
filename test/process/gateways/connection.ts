import { Agent, request } from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';
import { until } from '../../cluster/harness/until.ts';

export interface Answered {
  readonly status: number;
  readonly text: string;
}

/** The change of a request may take effect or not: its node was cut off from the active one. */
export class OutcomeUnknown extends Error {}

/** Resolves with the result of a task; with undefined if the outcome of one of its requests is unknown. */
export const unlessUnknown = <T>(task: Promise<T>): Promise<T | undefined> =>
  task.catch((error: unknown) => {
    if (error instanceof OutcomeUnknown) return undefined;
    throw error;
  });

/** Repeats a task that may be done twice, until its outcome is known. */
export const untilKnown = <T>(task: () => Promise<T>): Promise<T> =>
  until('a request with a known outcome', () => unlessUnknown(task()));

/**
 * One connection of a client, which stays with the thread that accepted it. A patient one is for a cluster, whose nodes may be cut off from
 * each other while the machine stalls: it repeats a request that was refused with 503, because nothing was done.
 */
export class Connection {
  readonly #url: URL;
  readonly #token: string;
  readonly #request: typeof request;
  readonly #agent: Agent;
  readonly #isPatient: boolean;

  /** @param identity - the certificate that the client presents, with its key */
  constructor(
    url: string,
    token: string,
    {
      isPatient = false,
      identity = {},
    }: { readonly isPatient?: boolean; readonly identity?: { cert?: string; key?: string } } = {},
  ) {
    this.#isPatient = isPatient;
    this.#url = new URL(url);
    this.#token = token;
    const isTls = this.#url.protocol === 'https:';
    const settings = { keepAlive: true, maxSockets: 1 };
    this.#request = isTls ? tlsRequest : request;
    this.#agent = isTls ? new TlsAgent({ ...settings, rejectUnauthorized: false, ...identity }) : new Agent(settings);
  }

  /** @throws OutcomeUnknown only if it is patient */
  async call(
    method: string,
    path: string,
    body?: object,
    {
      token = this.#token,
      headers = {},
    }: { readonly token?: string | undefined; readonly headers?: Readonly<Record<string, string>> } = {},
  ): Promise<Answered> {
    const sent = { ...headers, ...(token !== '' && { 'X-Service-Token': token }) };
    if (!this.#isPatient) return this.#send(method, path, body, sent);
    const answer = await until(`${method} ${path} is served`, async () => {
      const given = await this.#send(method, path, body, sent);
      return given.status !== 503 && given;
    });
    if (answer.status === 504) throw new OutcomeUnknown(answer.text);
    return answer;
  }

  #send(method: string, path: string, body: object | undefined, more: Readonly<Record<string, string>>): Promise<Answered> {
    const text = body === undefined ? '' : JSON.stringify(body);
    const headers = { ...more, 'Content-Length': String(Buffer.byteLength(text)) };
    const { hostname, port } = this.#url;
    return new Promise((resolve, reject) => {
      const sent = this.#request({ hostname, port, method, path: `/v1/${path}`, headers, agent: this.#agent }, (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString() }));
        answer.on('error', reject);
      });
      sent.on('error', reject);
      sent.end(text);
    });
  }

  /** Returns the string or number at `data.<name>` of the answer. @throws Error for any other status than 200 or 204 */
  async data(method: string, path: string, body?: object): Promise<Readonly<Record<string, unknown>>> {
    const { status, text } = await this.call(method, path, body);
    if (status !== 200 && status !== 204) throw new Error(`${method} ${path}: ${status} ${text}`);
    return text === '' ? {} : (JSON.parse(text).data ?? JSON.parse(text));
  }

  close(): void {
    this.#agent.destroy();
  }
}
