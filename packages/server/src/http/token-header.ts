import type { IncomingHttpHeaders } from 'node:http';

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

/** Durations of nothing, in Go's syntax: `0`, `0s`, `0m0s`. */
const noTime = /^(?:0+(?:ns|us|µs|μs|ms|[smhd]))*0*$/;

/** Whether the caller wants the answer wrapped into a token of its own. */
export const wantsWrapping = (headers: IncomingHttpHeaders): boolean =>
  !noTime.test(either(headers['x-service-wrap-ttl'], headers['x-vault-wrap-ttl']));
