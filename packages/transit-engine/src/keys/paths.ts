/** Longest key name, in characters, that leaves room in the store's paths. */
const nameLengthMax = 512;
const versionDigits = 10;
/** Enough for every safe integer, so that the byte order of due times is their order. */
const timeDigits = 16;

/**
 * Whether `name` can name a key: letters, digits, `_`, and between the first and the last character also `-` and `.`.
 * At most 512 characters, a bound of the store's paths.
 */
export const isKeyName = (name: string): boolean => name.length <= nameLengthMax && /^\w(?:[\w.-]*\w)?$/.test(name);

/** A version record's place: which key, which version. */
export interface VersionPlace {
  readonly keyId: string;
  readonly version: number;
}

/** A place in the index of due rotations. */
export interface DuePlace {
  /** Unix milliseconds. */
  readonly dueMs: number;
  readonly name: string;
}

/** Where one mount keeps its records. */
export interface Paths {
  /** Before every record of the mount. */
  readonly mount: string;
  /** Before every key's record; what follows is the name. */
  readonly keys: string;
  /** Before every version's record, whatever the key. */
  readonly versions: string;
  readonly keysConfig: string;
  readonly cacheConfig: string;
  /** Written whenever the cache configuration is to come into force. */
  readonly cacheReload: string;
  readonly wrappingKey: string;
  /** Before every due time of an automatic rotation; what follows is the time, then the name. */
  readonly due: string;
  dueAt(place: DuePlace): string;
  parseDue(path: string): DuePlace;
  key(name: string): string;
  /** Before the version records of one key, which sort by version. */
  versionsOf(keyId: string): string;
  version(place: VersionPlace): string;
  /** Sorts behind every version record of the key and before those of the next one. */
  afterVersionsOf(keyId: string): string;
  parseVersion(path: string): VersionPlace;
}

/**
 * One record per key and one per key version, so that cost does not grow with history: `transit/<mount id>/key/<name>`,
 * `transit/<mount id>/ver/<key id>/<version>`. Versions have ten digits, so that their byte order is their numeric order. Keys
 * that rotate by themselves have a place in `transit/<mount id>/due/<time>/<name>`, so that what is due is found without the rest.
 */
export function pathsOf(mountId: string): Paths {
  const mount = `transit/${mountId}/`;
  const [keys, versions, due] = [`${mount}key/`, `${mount}ver/`, `${mount}due/`];
  const versionsOf = (keyId: string): string => `${versions}${keyId}/`;
  return {
    mount,
    keys,
    versions,
    keysConfig: `${mount}config/keys`,
    cacheConfig: `${mount}config/cache`,
    cacheReload: `${mount}config/cache-reload`,
    wrappingKey: `${mount}wrapping-key`,
    due,
    dueAt: ({ dueMs, name }) => `${due}${String(dueMs).padStart(timeDigits, '0')}/${name}`,
    parseDue(path) {
      const [dueMs = '', name = ''] = path.slice(due.length).split('/');
      return { dueMs: Number(dueMs), name };
    },
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
