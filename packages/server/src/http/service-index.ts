import type { LogIndex } from '@transitd/raft-core';
import { RequestError } from './error-answer.ts';

/** Names the state that an answer came from; whoever sends it back sees nothing older. Opaque to callers. */
export const indexHeader = 'X-Service-Index';

/** The first digits of the cluster's id: an index of another cluster says nothing about this one. */
const prefixOf = (clusterId: string): string => clusterId.slice(0, 8);

export const indexValue = (clusterId: string, index: LogIndex): string => `${prefixOf(clusterId)}.${index}`;

/** What a header of this cluster names; undefined for any other text. */
export function indexIn(header: string | string[] | undefined, clusterId: string): LogIndex | undefined {
  const [, prefix, digits] = /^([0-9a-f]{8})\.(\d{1,15})$/.exec(String(header ?? '')) ?? [];
  return prefix === prefixOf(clusterId) ? Number(digits) : undefined;
}

/** The index that a caller wants to see. @throws RequestError when it is none of this cluster */
export function indexWanted(headers: NodeJS.Dict<string | string[]>, clusterId: string): LogIndex | undefined {
  const header = headers['x-service-index'] || headers['x-vault-index'];
  if (header === undefined || header === '') return undefined;
  const index = indexIn(header, clusterId);
  if (index === undefined) throw new RequestError('invalid_request', `${indexHeader} is none of this cluster`);
  return index;
}
