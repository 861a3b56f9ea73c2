/** Paths of token records. Every id in a path is a keyed hash of a token or accessor. */
export const tokenKeyPath = 'access/token-key';
export const batchKeyPath = 'access/batch-key';
export const tokenPrefix = 'access/token/';
export const accessorPrefix = 'access/accessor/';
export const childPrefix = 'access/child/';
export const duePrefix = 'access/due/';

export const tokenPath = (id: string): string => tokenPrefix + id;

/** Path of the wrapped response that a wrapping token unwraps. */
export const wrappedPath = (id: string): string => `access/wrapped/${id}`;

/** Path of the record that maps an accessor to its token. */
export const accessorPath = (accessorId: string): string => accessorPrefix + accessorId;

/**
 * Prefix of the index entries of a token's children. They are indexed by its accessor: a token made again with the same custom id
 * gets another accessor and none of these children.
 */
export const childrenOf = (parentAccessorId: string): string => `${childPrefix}${parentAccessorId}/`;
export const childPath = (parentAccessorId: string, child: string): string => childrenOf(parentAccessorId) + child;

/** Parses a path that `childPath` made. */
export function parseChildPath(path: string): { readonly parentAccessorId: string; readonly child: string } {
  const [parentAccessorId = '', child = ''] = path.slice(childPrefix.length).split('/');
  return { parentAccessorId, child };
}

/** Times are in milliseconds and have 16 digits, so that paths in byte order are in time order. */
const timeDigits = 16;

/** Path of the index entry of a token that expires. Entries are ordered by time. */
export const duePath = (expiresMs: number, id: string): string =>
  `${duePrefix}${String(expiresMs).padStart(timeDigits, '0')}/${id}`;

/** Parses a path that `duePath` made. */
export function parseDuePath(path: string): { readonly expiresMs: number; readonly id: string } {
  const [time = '', id = ''] = path.slice(duePrefix.length).split('/');
  return { expiresMs: Number(time), id };
}
