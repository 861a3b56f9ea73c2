/** The keys of one cluster in etcd, all below its prefix. */
export interface Keys {
  /** Every key of this cluster is at or after this one and before `end`. */
  readonly start: string;
  readonly end: string;
  /**
   * Key of the record at `path` in a space. Readers see the records of one space. A restore fills the next space, and then makes that the
   * one of the readers.
   */
  readonly record: (space: number, path: string) => string;
  /** All records of a space are at or after the first of these keys and before the second. */
  readonly records: (space: number) => { readonly key: string; readonly end: string };
  /** Names the space of the readers; without it that is space 0. */
  readonly space: string;
  /** The feature level of the cluster: a node that does not support it must not run. */
  readonly level: string;
  /** Random id of the cluster, written once. */
  readonly cluster: string;
  /** Written by every commit. */
  readonly marker: string;
  /** Names the active node; its lease deletes it. */
  readonly active: string;
  /** Written at intervals by the active node. */
  readonly heartbeat: string;
  /** Number of values that nodes have reserved. */
  readonly reserved: string;
  /** Makes a staged transaction effective. */
  readonly staged: string;
  /** All chunks of staged transactions are at or after this key and before `chunksEnd`. */
  readonly chunks: string;
  readonly chunksEnd: string;
  readonly chunk: (attempt: string, number: number) => string;
  /** Key of the record with which a node makes itself known; its lease deletes it. */
  readonly node: (id: number) => string;
  /** All records of nodes are at or after this key and before `nodesEnd`. */
  readonly nodes: string;
  readonly nodesEnd: string;
  /** Returns what `key` is; undefined for a key that this version does not know. */
  readonly kindOf: (key: string) => KeyKind | undefined;
}

export type KeyKind =
  | { readonly kind: 'record'; readonly space: number; readonly path: string }
  | { readonly kind: 'chunk' }
  | { readonly kind: 'node'; readonly id: number }
  | { readonly kind: 'cluster' | 'marker' | 'active' | 'heartbeat' | 'level' | 'reserved' | 'space' | 'staged' };

/** Returns the keys below `prefix`. @throws TypeError for a prefix that is empty or has an empty segment */
export function keysBelow(prefix: string): Keys {
  const name = prefix.replace(/^\/|\/$/g, '');
  if (!/^[\w.-]+(\/[\w.-]+)*$/.test(name))
    throw new TypeError('the prefix in etcd is not a path of letters, digits, "_", "-" and "."');
  const start = `${name}/`;
  const recordsOf = (space: number): string => (space === 0 ? `${start}r/` : `${start}r${space}/`);
  const chunks = `${start}s/`;
  const nodes = `${start}n/`;
  const named = {
    cluster: `${start}m/cluster`,
    marker: `${start}m/commit`,
    active: `${start}m/active`,
    heartbeat: `${start}m/heartbeat`,
    level: `${start}m/level`,
    reserved: `${start}m/reserved`,
    space: `${start}m/space`,
    staged: `${start}m/staged`,
  };
  const kinds = new Map(Object.entries(named).map(([kind, key]) => [key, { kind } as KeyKind]));
  return {
    ...named,
    start,
    end: afterSlash(start),
    record: (space, path) => recordsOf(space) + path,
    records: (space) => ({ key: recordsOf(space), end: afterSlash(recordsOf(space)) }),
    chunks,
    chunksEnd: afterSlash(chunks),
    chunk: (attempt, number) => `${chunks}${attempt}/${String(number).padStart(4, '0')}`,
    node: (id) => `${nodes}${id}`,
    nodes,
    nodesEnd: afterSlash(nodes),
    kindOf: (key) => {
      if (key.startsWith(nodes)) return nodeKind(key.slice(nodes.length));
      if (key.startsWith(chunks)) return { kind: 'chunk' };
      return kinds.get(key) ?? (key.startsWith(start) ? recordKind(key.slice(start.length)) : undefined);
    },
  };
}

function recordKind(key: string): KeyKind | undefined {
  const [head, space] = /^r([1-9]\d{0,14})?\//.exec(key) ?? [];
  return head === undefined ? undefined : { kind: 'record', space: Number(space ?? 0), path: key.slice(head.length) };
}

function nodeKind(id: string): KeyKind | undefined {
  return /^[1-9]\d{0,14}$/.test(id) ? { kind: 'node', id: Number(id) } : undefined;
}

/** "0" is the character after "/". */
const afterSlash = (start: string): string => `${start.slice(0, -1)}0`;
