import { AccessError, type KubernetesAnswer } from '@transitd/access';
import { type AccountClaims, loginRefused } from './account-token.ts';

// The API `authentication.k8s.io/v1` of Kubernetes: a TokenReview asks the API server whose token this is.

/**
 * Returns the URL of token reviews at an API server; undefined for an unusable one. HTTPS, except on loopback, where a proxy of the cluster
 * may listen.
 * @param host - a URL of the API server, or its host with or without a port
 */
export function reviewUrl(host: string): string | undefined {
  const text = host.includes('://') ? host : `https://${host}`;
  if (!URL.canParse(text)) return undefined;
  const { protocol, hostname, origin, pathname, username, password, search, hash } = new URL(text);
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback)) return undefined;
  if ([username, password, search, hash].some((part) => part !== '')) return undefined;
  return `${origin}${pathname.replace(/\/+$/, '')}/apis/authentication.k8s.io/v1/tokenreviews`;
}

/** @param audiences - the API server confirms which of them the token has; empty for its own */
export const reviewOf = (token: string, audiences: readonly string[]): object => ({
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenReview',
  spec: { token, ...(audiences.length > 0 && { audiences }) },
});

/** Returns the error for a token that was not reviewed, so that nobody knows whether it is valid. */
export const notReviewed = (why: string, options?: ErrorOptions): AccessError =>
  new AccessError('review_unavailable', `the Kubernetes API server did not review the token: ${why}`, options);

/** Returns the error for a refused caller, without the reason: it is for the operator, who reads the constraint in the audit log. */
export const permissionDenied = (constraint: string): AccessError => loginRefused('permission denied', constraint);

/**
 * Checks that the answer confirms the token, its account and one of its audiences.
 * @param audiences - those that the review named
 * @throws AccessError `login_refused`, `review_unavailable`
 */
export function checkReview({ status, json }: KubernetesAnswer, { account }: AccountClaims, audiences: readonly string[]): void {
  // The token that we sent with the review is not valid, or may not review others.
  if (status === 401 || status === 403)
    throw loginRefused(
      `permission denied: the Kubernetes API server refused the review with status ${status}`,
      'token_reviewer_jwt',
    );
  if (status !== 200 && status !== 201) throw notReviewed(`it answered with status ${status}`);
  if (typeof json !== 'object' || json === null) throw notReviewed('its answer is not JSON');
  const { authenticated, error = '', user, audiences: confirmed } = Object(Reflect.get(json, 'status'));
  const { username, uid } = Object(user);
  const { namespace, name, uid: claimed } = account;
  const isConfirmed =
    authenticated === true &&
    error === '' &&
    username === `system:serviceaccount:${namespace}:${name}` &&
    uid === claimed &&
    // An API server that does not know audiences confirms none.
    (audiences.length === 0 || (Array.isArray(confirmed) && audiences.some((one) => confirmed.includes(one))));
  if (!isConfirmed) throw permissionDenied('token_review');
}
