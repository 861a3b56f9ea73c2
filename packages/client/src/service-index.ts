export const indexHeader = 'X-Service-Index';

/** The state that a client wants to see at least: the newer of two of one cluster, else the one that was told last. */
export function newerIndex(known: string | undefined, told: string): string {
  const [before, after] = [partsOf(known ?? ''), partsOf(told)];
  return before !== undefined && after !== undefined && before.cluster === after.cluster && before.index > after.index
    ? (known ?? told)
    : told;
}

function partsOf(text: string): { readonly cluster: string; readonly index: number } | undefined {
  const [, cluster = '', index] = /^([0-9a-f]{8})\.(\d{1,15})$/.exec(text) ?? [];
  return index === undefined ? undefined : { cluster, index: Number(index) };
}
