/** Where the records of tokens lie. Every id in a path is a keyed hash of the token or accessor. */
export const tokenKeyPath = 'access/token-key';
export const batchKeyPath = 'access/batch-key';
export const tokenPrefix = 'access/token/';
export const accessorPrefix = 'access/accessor/';
export const childPrefix = 'access/child/';
export const duePrefix = 'access/due/';

export const tokenPath = (id: string): string => tokenPrefix + id;

/** The answer that a wrapping token fetches. */
export const wrappedPath = (id: string): string => `access/wrapped/${id}`;

/** Leads from an accessor to its token. */
export const accessorPath = (accessorId: string): string => accessorPrefix + accessorId;

/**
 * Before the places of a token's children, one each. They lie by its accessor: whoever makes a token again with the same custom id gets
 * another accessor, and none of these children.
 */
export const childrenOf = (parentAccessorId: string): string => `${childPrefix}${parentAccessorId}/`;
export const childPath = (parentAccessorId: string, child: string): string => childrenOf(parentAccessorId) + child;

/** Reads `childPath` back. */
export function parseChildPath(path: string): { readonly parentAccessorId: string; readonly child: string } {
  const [parentAccessorId = '', child = ''] = path.slice(childPrefix.length).split('/');
  return { parentAccessorId, child };
}

/** Milliseconds with sixteen digits, so that the order of bytes is the order of times. */
const timeDigits = 16;

/** When a token is due to go: a place per token, ordered by time. */
export const duePath = (expiresMs: number, id: string): string =>
  `${duePrefix}${String(expiresMs).padStart(timeDigits, '0')}/${id}`;

/** Reads `duePath` back. */
export function parseDuePath(path: string): { readonly expiresMs: number; readonly id: string } {
  const [time = '', id = ''] = path.slice(duePrefix.length).split('/');
  return { expiresMs: Number(time), id };
}
