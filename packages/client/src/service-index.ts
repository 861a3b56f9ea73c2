export const indexHeader = 'X-Service-Index';

/**
 * Returns the minimum index that the client's next reads require: the newer one if both indexes are from the same cluster, otherwise
 * the received one.
 */
export function newerIndex(known: string | undefined, received: string): string {
  const [before, after] = [partsOf(known ?? ''), partsOf(received)];
  return before !== undefined && after !== undefined && before.cluster === after.cluster && before.index > after.index
    ? (known ?? received)
    : received;
}

/** Reads base64 of `v1:<cluster>:<index>:…`, the form that the clients of Vault read as well. */
function partsOf(text: string): { readonly cluster: string; readonly index: number } | undefined {
  const [, cluster = '', index] = /^v1:([^:]*):(\d{1,15}):/.exec(decoded(text)) ?? [];
  return index === undefined ? undefined : { cluster, index: Number(index) };
}

function decoded(base64: string): string {
  try {
    return atob(base64);
  } catch {
    return '';
  }
}
