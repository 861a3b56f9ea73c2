import type { LogIndex } from '@transitd/raft-core';
import { RequestError } from './reply/request-error.ts';

/** Names the state that an answer came from; whoever sends it back sees nothing older. Opaque to callers. */
export const indexHeader = 'X-Service-Index';

/** Under our name and under the peers', where existing clients look for it. */
export const indexHeaders = (value: string): Readonly<Record<string, string>> => ({
  [indexHeader]: value,
  'X-Vault-Index': value,
});

/**
 * The peers' form, of which existing clients keep the newest when requests cross: base64 of `v1:<cluster>:<index>:<index of another
 * cluster>:<HMAC>`. There is no other cluster here, and nothing that an HMAC would have to protect.
 */
export const indexValue = (clusterId: string, index: LogIndex): string =>
  Buffer.from(`v1:${clusterId}:${index}:0:`).toString('base64');

/** What a header of this cluster names; undefined for any other text. */
export function indexIn(header: string | string[] | undefined, clusterId: string): LogIndex | undefined {
  const [, digits] = /:(\d{1,15}):0:$/.exec(Buffer.from(String(header ?? ''), 'base64').toString('latin1')) ?? [];
  if (digits === undefined) return undefined;
  const index = Number(digits);
  return indexValue(clusterId, index) === header ? index : undefined; // the decoder reads much that was never encoded
}

/** The index that a caller wants to see. @throws RequestError when it belongs to another cluster */
export function indexWanted(headers: NodeJS.Dict<string | string[]>, clusterId: string): LogIndex | undefined {
  const header = headers['x-service-index'] || headers['x-vault-index'];
  if (header === undefined || header === '') return undefined;
  const index = indexIn(header, clusterId);
  if (index === undefined) throw new RequestError('invalid_request', `${indexHeader} belongs to another cluster`);
  return index;
}
