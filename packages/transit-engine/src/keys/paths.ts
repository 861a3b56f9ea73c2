/** Longest key name in characters. It leaves room in the store's paths. */
const nameLengthMax = 512;
const versionDigits = 10;
/** Digits of a due time. They are enough for every safe integer, so paths sort by due time. */
const timeDigits = 16;

/**
 * Whether `name` is a valid key name: letters, digits, `_`, and between the first and the last character also `-` and `.`. At most
 * 512 characters, because the store limits paths.
 */
export const isKeyName = (name: string): boolean => name.length <= nameLengthMax && /^\w(?:[\w.-]*\w)?$/.test(name);

/** The location of a version record. */
export interface VersionPlace {
  readonly keyId: string;
  readonly version: number;
}

/** An entry in an index of keys by the time at which something is due. */
export interface DuePlace {
  /** Unix milliseconds. */
  readonly dueMs: number;
  readonly name: string;
}

/** An index of keys by the time at which something is due: its paths sort by time. */
export interface DueIndex {
  /** Prefix of all entries. The due time follows, then the name. */
  readonly prefix: string;
  path(place: DuePlace): string;
  parse(path: string): DuePlace;
}

/** The paths of one mount's records. */
export interface Paths {
  /** Prefix of all records of the mount. */
  readonly mount: string;
  /** Prefix of all key records. The name follows. */
  readonly keys: string;
  /** Prefix of all version records. */
  readonly versions: string;
  readonly keysConfig: string;
  readonly cacheConfig: string;
  /** Written to apply the cache configuration on every node. */
  readonly cacheReload: string;
  readonly wrappingKey: string;
  /** Automatic rotations. */
  readonly rotations: DueIndex;
  /** Removals of versions by `trim_after`. */
  readonly trims: DueIndex;
  /** Scheduled deletions of keys. */
  readonly deletions: DueIndex;
  /** Prefix of the index of keys with versions that the secondary clusters have not confirmed. The name follows. */
  readonly unconfirmed: string;
  /** The record of a key's uses. */
  usage(name: string): string;
  key(name: string): string;
  /** Prefix of the version records of one key, which sort by version. */
  versionsOf(keyId: string): string;
  version(place: VersionPlace): string;
  /** Sorts after every version record of the key and before those of the next key. */
  afterVersionsOf(keyId: string): string;
  parseVersion(path: string): VersionPlace;
}

/**
 * Returns the paths of a mount. One record per key, `transit/<mount id>/key/<name>`, and one per key version,
 * `transit/<mount id>/ver/<key id>/<version>`, so that cost does not grow with history. Versions have ten digits, so that they sort in
 * numeric order. Keys with automatic rotation have an entry `transit/<mount id>/due/<time>/<name>`, keys of which versions will be deleted
 * `transit/<mount id>/trim/<time>/<name>`, and keys that will be deleted `transit/<mount id>/deletion/<time>/<name>`, so that due keys are
 * found without reading the others; so are keys with unconfirmed versions, which have an entry `transit/<mount id>/unconfirmed/<name>`.
 */
export function pathsOf(mountId: string): Paths {
  const mount = `transit/${mountId}/`;
  const [keys, versions, unconfirmed] = [`${mount}key/`, `${mount}ver/`, `${mount}unconfirmed/`];
  const versionsOf = (keyId: string): string => `${versions}${keyId}/`;
  return {
    mount,
    keys,
    versions,
    keysConfig: `${mount}config/keys`,
    cacheConfig: `${mount}config/cache`,
    cacheReload: `${mount}config/cache-reload`,
    wrappingKey: `${mount}wrapping-key`,
    rotations: dueIndex(`${mount}due/`),
    trims: dueIndex(`${mount}trim/`),
    deletions: dueIndex(`${mount}deletion/`),
    unconfirmed,
    usage: (name) => `${mount}usage/${name}`,
    key: (name) => keys + name,
    versionsOf,
    version: ({ keyId, version }) => versionsOf(keyId) + String(version).padStart(versionDigits, '0'),
    afterVersionsOf: (keyId) => `${versionsOf(keyId)}~`,
    parseVersion(path) {
      const [keyId = '', version = ''] = path.slice(versions.length).split('/');
      return { keyId, version: Number(version) };
    },
  };
}

const dueIndex = (prefix: string): DueIndex => ({
  prefix,
  path: ({ dueMs, name }) => `${prefix}${String(dueMs).padStart(timeDigits, '0')}/${name}`,
  parse(path) {
    const [dueMs = '', name = ''] = path.slice(prefix.length).split('/');
    return { dueMs: Number(dueMs), name };
  },
});
