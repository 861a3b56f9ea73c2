import { randomUUID } from 'node:crypto';
import { changedInert } from '@transitd/access';
import { ciphertextPrefixPattern } from '@transitd/configuration';
import { printableName } from '@transitd/transit-engine';
import { type Mount, MountError, type MountTable, type Move, newMount } from './mounts.ts';

/** Settings of a mount that can be set when it is enabled and changed later; undefined ones stay as they are. */
export type MountTuning = {
  readonly [Name in 'allowedManagedKeys' | 'ciphertextPrefix' | 'defaultTtlS' | 'description' | 'inert' | 'maxTtlS' | 'options']?:
    | Mount[Name]
    | undefined;
};

/** All settings of a new mount. Those that are not in {@link MountTuning} never change. */
export interface MountRequest extends MountTuning {
  readonly path: string;
  readonly type: string;
  readonly local?: boolean | undefined;
  readonly sealWrap?: boolean | undefined;
  readonly externalEntropyAccess?: boolean | undefined;
}

/** Maximum number of mounts in a cluster. Each mount has an engine with caches on every node. */
export const mountsMax = 256;
/** Maximum number of moves that are remembered. */
export const movesMax = 32;
const pathCharsMax = 256;
const descriptionCharsMax = 1024;
const optionsCharsMax = 4096;
const allowedKeysMax = 128;
const keyNameCharsMax = 128;

/** Paths where no engine can be mounted: other parts of this API, and paths where clients expect something else than an engine. */
const reserved: ReadonlySet<string> = new Set(['audit', 'auth', 'cubbyhole', 'identity', 'sys']);
const isReserved = (path: string): boolean => reserved.has(path.split('/', 1)[0] ?? '');

/** Adds a mount. @throws MountError `invalid_mount` */
export function enableMount({ mounts, moves }: MountTable, request: MountRequest, ciphertextPrefix: string): MountTable {
  const { path, type, local = false, sealWrap = false, externalEntropyAccess = false } = request;
  if (type === '') throw refusal('backend type must be specified as a string');
  if (isReserved(path)) throw refusal(`cannot mount "${path}/"`);
  checkPath(path);
  checkFree(mounts, path);
  if (type !== 'transit') throw refusal(`plugin not found in the catalog: ${printableName(type)}`);
  if (mounts.length >= mountsMax) throw refusal(`cannot mount: the cluster already has the maximum of ${mountsMax} mounts`);
  const mount = withTuning({ ...newMount(path, ciphertextPrefix), local, sealWrap, externalEntropyAccess }, request);
  return { mounts: [...mounts, mount], moves };
}

/** Removes a mount; returns undefined when nothing is mounted at `path`. @throws MountError `invalid_mount` */
export function disableMount(
  { mounts, moves }: MountTable,
  path: string,
): (MountTable & { readonly removed: string }) | undefined {
  if (isReserved(path)) throw refusal(`cannot unmount "${path}/"`);
  const mount = mounts.find((each) => each.path === path);
  return mount && { mounts: mounts.filter((each) => each !== mount), moves, removed: mount.id };
}

/** Changes settings of a mount. @throws MountError `invalid_mount` */
export function tuneMount({ mounts, moves }: MountTable, path: string, tuning: MountTuning): MountTable {
  const mount = mountAt(mounts, path);
  const next = withTuning(mount, tuning);
  return { mounts: mounts.map((each) => (each === mount ? next : each)), moves };
}

/** Moves a mount to another path. @throws MountError `invalid_mount` */
export function moveMount(
  { mounts, moves }: MountTable,
  { from, to }: { readonly from: string; readonly to: string },
): MountTable & { readonly move: Move } {
  const reservedPath = [from, to].find(isReserved);
  if (reservedPath !== undefined) throw refusal(`cannot remount "${reservedPath}/"`);
  const mount = mountAt(mounts, from);
  checkPath(to);
  // The mount does not conflict with itself, except in a move to its present path.
  checkFree(from === to ? mounts : mounts.filter((each) => each !== mount), to);
  const move = { id: randomUUID(), from, to };
  return {
    mounts: mounts.map((each) => (each === mount ? { ...mount, path: to } : each)),
    moves: [...moves, move].slice(-movesMax),
    move,
  };
}

/** Returns the mount at `path`. @throws MountError `invalid_mount` */
export function mountAt(mounts: readonly Mount[], path: string): Mount {
  const mount = mounts.find((each) => each.path === path);
  if (mount === undefined) throw refusal(`No secret engine mount at ${path}/`);
  return mount;
}

function checkPath(path: string): void {
  const isNamed = path.length <= pathCharsMax && path.split('/').every((segment) => /^\w(?:[\w.-]*\w)?$/.test(segment));
  if (!isNamed)
    throw refusal(
      `invalid mount path: use segments of letters, digits and "_", with "-" and "." only inside a segment, at most ${pathCharsMax} characters in all`,
    );
  if (path.endsWith('/tune')) throw refusal('invalid mount path: it ends with "/tune", which is the path for tuning a mount');
}

/** Refuses a path that is a prefix of another mount's path, or that has such a path as its prefix: requests would belong to both mounts. */
function checkFree(mounts: readonly Mount[], path: string): void {
  const conflicting = mounts.find((mount) => `${mount.path}/`.startsWith(`${path}/`) || `${path}/`.startsWith(`${mount.path}/`));
  if (conflicting !== undefined) throw refusal(`path is already in use at ${conflicting.path}/`);
}

function withTuning(mount: Mount, tuning: MountTuning): Mount {
  const changes = Object.fromEntries(Object.entries(tuning).filter(([name, value]) => tunable.has(name) && value !== undefined));
  const next: Mount = { ...mount, ...changes, inert: changedInert(mount.inert, tuning.inert) };
  if (next.description.length > descriptionCharsMax) throw refusal(`a description has at most ${descriptionCharsMax} characters`);
  if (JSON.stringify(next.options).length > optionsCharsMax)
    throw refusal(`options are too long: at most ${optionsCharsMax} characters in all`);
  if (!ciphertextPrefixPattern.test(next.ciphertextPrefix))
    throw refusal('ciphertext_prefix has 1 to 32 lower-case letters and digits, the first a letter');
  const { allowedManagedKeys: names } = next;
  if (names.length > allowedKeysMax || names.some((name) => name.length > keyNameCharsMax))
    throw refusal(`allowed_managed_keys has at most ${allowedKeysMax} names of at most ${keyNameCharsMax} characters`);
  if (next.maxTtlS !== 0 && next.defaultTtlS > next.maxTtlS) throw refusal('default_lease_ttl must be at most max_lease_ttl');
  return next;
}

const tunable: ReadonlySet<string> = new Set([
  'allowedManagedKeys',
  'ciphertextPrefix',
  'defaultTtlS',
  'description',
  'maxTtlS',
  'options',
] satisfies (keyof MountTuning)[]);

const refusal = (message: string): MountError => new MountError('invalid_mount', message);
