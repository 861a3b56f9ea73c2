import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { makeCertificate } from '../../../process/test/certificate.ts';

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** An OpenID provider on loopback, by TLS with a certificate of its own. It publishes keys, and signs tokens with them. */
export class FakeProvider {
  /** `https://localhost:PORT` */
  readonly url: string;
  /** Its certificate in PEM, and the file that has it. */
  readonly ca: string;
  readonly caFile: string;
  /** Paths that were requested, each with the `Authorization` and the `Accept` that came with it. */
  readonly requests: {
    readonly path: string;
    readonly authorization: string | undefined;
    readonly accept: string | undefined;
  }[] = [];
  /** Replaces members of the discovery document. */
  document: object = {};
  /** Answers a request in place of the provider, by its path. */
  readonly answers = new Map<string, RequestListener>();
  readonly #server: Server;
  readonly #keys = new Map<string, { readonly publicKey: KeyObject; readonly privateKey: KeyObject }>();
  #published: readonly string[] = [];

  private constructor(server: Server, caFile: string) {
    const { port } = server.address() as AddressInfo;
    this.#server = server;
    this.url = `https://localhost:${port}`;
    this.caFile = caFile;
    this.ca = readFileSync(caFile, 'utf8');
    const listener: RequestListener = (req, res) => {
      const { url: path = '', headers } = req;
      this.requests.push({ path, authorization: headers.authorization, accept: headers.accept });
      const answer = this.answers.get(path) ?? ((_, response) => response.end(this.#contentOf(path)));
      answer(req, res);
    };
    server.on('request', listener);
  }

  #contentOf(path: string): string {
    return path === '/.well-known/openid-configuration'
      ? JSON.stringify({ issuer: this.url, jwks_uri: `${this.url}/keys`, ...this.document })
      : this.keySet;
  }

  /** @param folder - for its certificate */
  static async start(folder: string): Promise<FakeProvider> {
    const { cert_file, key_file } = makeCertificate(folder, 'provider', 2, 'DNS:localhost,IP:127.0.0.1');
    const server = createServer({ cert: readFileSync(cert_file), key: readFileSync(key_file) }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new FakeProvider(server, cert_file);
  }

  /** Publishes these keys, by their ids, and no others; a new id makes a key. */
  publish(...kids: readonly string[]): void {
    for (const kid of kids) if (!this.#keys.has(kid)) this.#keys.set(kid, generateKeyPairSync('ec', { namedCurve: 'P-256' }));
    this.#published = kids;
  }

  get keySet(): string {
    const jwk = (kid: string) => ({ ...this.#keys.get(kid)?.publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'ES256' });
    return JSON.stringify({ keys: this.#published.map(jwk) });
  }

  /** Returns a token that is good for ten minutes. @param claims - in addition, or instead; the audience is `transitd` */
  signed(kid: string, claims: object = {}): string {
    const nowS = Math.floor(Date.now() / 1000);
    const all = { iss: this.url, sub: 'job-7', aud: 'transitd', iat: nowS, exp: nowS + 600, ...claims };
    const text = `${base64url({ alg: 'ES256', typ: 'JWT', kid })}.${base64url(all)}`;
    const { privateKey: key } = this.#keys.get(kid) ?? generateKeyPairSync('ec', { namedCurve: 'P-256' });
    return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  }

  /** Refuses connections from now on. */
  async end(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
