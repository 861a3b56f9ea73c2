import type { IncomingHttpHeaders } from 'node:http';
import { secondsOf } from '@transitd/access';
import { RequestError } from './reply/request-error.ts';

type Header = IncomingHttpHeaders[string];

/** A header under our name, else under the peers'; one that is empty is as good as none. Node joins those that come twice. */
const either = (ours: Header, theirs: Header): string => String(ours || theirs || '');

/** The caller's token: `X-Service-Token`, else `X-Vault-Token`, else `Authorization: Bearer`. */
export function tokenOf(headers: IncomingHttpHeaders): string | undefined {
  const named = either(headers['x-service-token'], headers['x-vault-token']);
  if (named !== '') return named;
  const bearer = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '');
  return bearer?.[1];
}

/** Whether the caller asks for a namespace other than the root, which is the only one there is. */
export const namesNamespace = (headers: IncomingHttpHeaders): boolean =>
  !/^\/*(?:root\/*)?$/.test(either(headers['x-service-namespace'], headers['x-vault-namespace']));

/**
 * For how many seconds the caller wants the answer to wait, wrapped into a token of its own; 0 for not at all.
 * @throws RequestError `invalid_request`
 */
export function wrapTtlOf(headers: IncomingHttpHeaders): number {
  const asked = either(headers['x-service-wrap-ttl'], headers['x-vault-wrap-ttl']);
  if (asked === '') return 0;
  const seconds = secondsOf(asked);
  // A time that cannot be read must not become none: what was to be wrapped would leave in clear.
  if (!Number.isSafeInteger(seconds) || seconds < 0)
    throw new RequestError('invalid_request', 'response wrapping: the TTL is no duration such as 60 or 5m');
  return seconds;
}
