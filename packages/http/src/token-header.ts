import type { IncomingHttpHeaders } from 'node:http';
import { secondsOf } from '@transitd/process';
import { RequestError } from './reply/request-error.ts';

type Header = IncomingHttpHeaders[string];

/**
 * Returns the value of a header under our name or, if that is missing or empty, under the peers' name. Node joins repeated headers into one
 * string.
 */
const either = (ours: Header, theirs: Header): string => String(ours || theirs || '');

/**
 * Returns the caller's token: `X-Service-Token`, else `X-Vault-Token`, else `Authorization: Bearer`. A header that repeats the same
 * token counts once.
 * @throws RequestError `invalid_request` if a header is repeated with different tokens
 */
export function tokenOf(headers: IncomingHttpHeaders): string | undefined {
  const named = either(headers['x-service-token'], headers['x-vault-token']);
  if (named !== '') {
    const [token, ...others] = named.split(', ');
    if (others.some((other) => other !== token))
      throw new RequestError('invalid_request', 'the token header is repeated with different tokens: send it once');
    return token;
  }
  const bearer = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '');
  return bearer?.[1];
}

/** Returns whether the request names a namespace other than the root namespace, which is the only one. */
export function namesNamespace(headers: IncomingHttpHeaders): boolean {
  const named = either(headers['x-service-namespace'], headers['x-vault-namespace']);
  return named !== '' && !/^\/*(?:root\/*)?$/.test(named);
}

/**
 * Returns the requested TTL of response wrapping in seconds; 0 for no wrapping.
 * @throws RequestError `invalid_request`
 */
export function wrapTtlOf(headers: IncomingHttpHeaders): number {
  const asked = either(headers['x-service-wrap-ttl'], headers['x-vault-wrap-ttl']);
  if (asked === '') return 0;
  const seconds = secondsOf(asked);
  // An invalid TTL must not be treated as absent: the response would be sent unwrapped.
  if (!Number.isSafeInteger(seconds) || seconds < 0)
    throw new RequestError('invalid_request', 'response wrapping: the TTL is not a duration such as 60 or 5m');
  return seconds;
}
