import type { IncomingHttpHeaders } from 'node:http';

const first = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

/** The caller's token: `X-Service-Token`, else `X-Vault-Token`, else `Authorization: Bearer`. */
export function tokenOf(headers: IncomingHttpHeaders): string | undefined {
  const named = first(headers['x-service-token']) ?? first(headers['x-vault-token']);
  if (named !== undefined && named !== '') return named;
  const bearer = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '');
  return bearer?.[1];
}

/** The namespace a caller asks for, without slashes at its ends; empty for the root namespace, the only one there is. */
export function namespaceOf(headers: IncomingHttpHeaders): string {
  const name = (first(headers['x-service-namespace']) ?? first(headers['x-vault-namespace']) ?? '').replace(/^\/+|\/+$/g, '');
  return name === 'root' ? '' : name;
}

/** Whether the caller wants the answer wrapped into a token of its own. */
export function wantsWrapping(headers: IncomingHttpHeaders): boolean {
  const ttl = first(headers['x-service-wrap-ttl']) ?? first(headers['x-vault-wrap-ttl']) ?? '';
  return !/^(0s?)?$/.test(ttl);
}
