import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { Kubernetes, KubernetesAnswer } from '@transitd/access';
import { exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from 'jose';

/** The key of the cluster, which signs the tokens of its service accounts. */
export const clusterKey = await generateKeyPair('ES256', { extractable: true });
/** Its public key in PEM. */
export const clusterKeyPem = await exportSPKI(clusterKey.publicKey);

/** The account that the tests use: `web` in the namespace `shop`. */
export const web: JWTPayload = {
  aud: ['transitd'],
  'kubernetes.io': { namespace: 'shop', serviceaccount: { name: 'web', uid: '7d2c' }, pod: { name: 'web-0', uid: '1' } },
};

/** Claims of a token; a claim that is undefined is left out. */
export type Claims = Readonly<Record<string, unknown>>;

/** Returns a token of {@link web}, with other claims if they are given. */
export const tokenOf = (claims: Claims = {}, key = clusterKey.privateKey, alg = 'ES256'): Promise<string> => {
  const nowS = Math.floor(Date.now() / 1000);
  const all: Claims = { iss: 'https://cluster', iat: nowS, nbf: nowS, exp: nowS + 600, ...web, ...claims };
  return new SignJWT(all as JWTPayload).setProtectedHeader({ alg, kid: 'k1' }).sign(key);
};

interface Reviewed {
  readonly username: string;
  readonly uid: string;
  readonly audiences: readonly string[];
}

/** What the API server says of {@link web}. */
export const reviewed: Reviewed = { username: 'system:serviceaccount:shop:web', uid: '7d2c', audiences: ['transitd'] };

/** The token reviews of an API server. */
export class StubApiServer {
  /** Who holds each valid token. */
  readonly accounts = new Map<string, Reviewed>();
  /** The tokens that may ask for a review. */
  readonly reviewers = new Set<string>();
  /** The requests so far. */
  readonly asked: { readonly url: string; readonly ca: string; readonly token: string; readonly body: object }[] = [];

  /** Returns a new token, which is valid. */
  async issue(claims: Claims = {}, account: Partial<Reviewed> = {}): Promise<string> {
    const token = await tokenOf(claims);
    this.accounts.set(token, { ...reviewed, ...account });
    return token;
  }

  review(token: string, body: object): KubernetesAnswer {
    if (!this.reviewers.has(token)) return failed(this.accounts.has(token) ? 403 : 401);
    const { spec } = body as { readonly spec: { readonly token: string; readonly audiences?: readonly string[] } };
    const account = this.accounts.get(spec.token);
    const audiences = account?.audiences.filter((one) => spec.audiences?.includes(one) ?? true) ?? [];
    if (account === undefined || audiences.length === 0)
      return { status: 201, json: { kind: 'TokenReview', spec, status: { user: {}, error: 'invalid bearer token' } } };
    const { username, uid } = account;
    const user = { username, uid, groups: ['system:serviceaccounts', 'system:authenticated'] };
    return { status: 201, json: { kind: 'TokenReview', spec, status: { authenticated: true, user, audiences } } };
  }
}

/**
 * Serves the reviews by TLS on localhost.
 * @param failure - status of every answer, if it is not 0; `hang`: there is none
 */
export async function serveReviews(
  api: StubApiServer,
  tls: { readonly cert: string; readonly key: string | Buffer },
  failure: () => number | 'hang' = () => 0,
): Promise<{ readonly url: string; close(): void }> {
  const server = createServer(tls, async (req, res) => {
    const status = failure();
    if (status === 'hang') return;
    const token = req.headers.authorization?.replace('Bearer ', '') ?? '';
    const answer = status === 0 ? api.review(token, Object(await json(req))) : failed(status);
    res.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.json));
  }).listen(0, 'localhost');
  await once(server, 'listening');
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `https://localhost:${(server.address() as AddressInfo).port}`, close };
}

export const failed = (status: number): KubernetesAnswer => ({
  status,
  json: { kind: 'Status', status: 'Failure', code: status },
});

/**
 * Calls the stub in memory.
 * @param answer - replaces the answers of the stub
 * @param pod - the files of the pod of the node
 */
export const callsOf = (
  server: StubApiServer,
  answer: (token: string, body: object) => KubernetesAnswer | Promise<KubernetesAnswer> = (...asked) => server.review(...asked),
  pod: Partial<Record<'ca.crt' | 'token', string>> = {},
): Kubernetes => ({
  post: async (url, { ca, token, json: body }) => {
    server.asked.push({ url, ca, token, body });
    return answer(token, body);
  },
  podFile: (name) => pod[name],
});
