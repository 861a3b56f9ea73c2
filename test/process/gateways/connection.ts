import { Agent, request } from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';

export interface Answered {
  readonly status: number;
  readonly text: string;
}

/** One connection of a client, which stays with the thread that accepted it. */
export class Connection {
  readonly #url: URL;
  readonly #token: string;
  readonly #request: typeof request;
  readonly #agent: Agent;

  constructor(url: string, token: string) {
    this.#url = new URL(url);
    this.#token = token;
    const isTls = this.#url.protocol === 'https:';
    const settings = { keepAlive: true, maxSockets: 1 };
    this.#request = isTls ? tlsRequest : request;
    this.#agent = isTls ? new TlsAgent({ ...settings, rejectUnauthorized: false }) : new Agent(settings);
  }

  call(method: string, path: string, body?: object, token = this.#token): Promise<Answered> {
    const text = body === undefined ? '' : JSON.stringify(body);
    const headers = { 'X-Service-Token': token, 'Content-Length': String(Buffer.byteLength(text)) };
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
