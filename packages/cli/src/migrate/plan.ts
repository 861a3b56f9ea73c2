import { secondsOf } from './differences.ts';
import { type End, keyNames, readKey } from './end.ts';
import { type Method, methodOf, type Permission } from './method.ts';
import { type MountMove, mountMoves } from './mounts.ts';
import { type PolicyMove, transitPolicies } from './policies.ts';
import type { SeenKey, VersionSeen } from './source-key.ts';
import type { KeyState, KnownKeys } from './state-file.ts';

/** A key of the source, the method to move it, and its state at the target. */
export interface KeyMove {
  readonly mount: string;
  readonly key: SeenKey;
  readonly method: Method;
  /**
   * - `absent`: not at the target
   * - `equal`: at the target with the same versions
   * - `older`: at the target, moved by an earlier run; the source has newer versions, or the earlier run was interrupted
   * - `other`: another key of this name, which stays
   */
  readonly present: 'absent' | 'equal' | 'older' | 'other';
}

export interface Plan {
  readonly mounts: readonly MountMove[];
  readonly keys: readonly KeyMove[];
  /** Undefined if the token may not list policies. */
  readonly policies: readonly PolicyMove[] | undefined;
}

export interface PlanOptions {
  readonly mounts: readonly string[];
  readonly granted: ReadonlySet<Permission>;
  readonly state: KnownKeys;
}

/** Reads both ends and plans the move. Changes nothing. */
export async function planMove(source: End, target: End, { mounts: chosen, granted, state }: PlanOptions): Promise<Plan> {
  const mounts = await mountMoves(source, target, chosen);
  const keys: KeyMove[] = [];
  for (const mount of mounts) {
    for (const name of await keyNames(source, mount.path)) {
      const key = await readKey(source, mount.path, name);
      if (key === undefined) continue; // deleted since the list
      const ours = mount.target === undefined ? undefined : await readKey(target, mount.path, name);
      const known = state.key(mount.path, name);
      keys.push({
        mount: mount.path,
        key,
        method: methodOf(key, { source, target, granted }),
        present: presenceOf(key, ours, known),
      });
    }
  }
  return {
    mounts,
    keys,
    policies: await transitPolicies(
      { source, target },
      mounts.map(({ path }) => path),
    ),
  };
}

/**
 * Compares a key with the one of the same name at the target. A key that this program did not put there is never replaced: it counts as
 * equal only if every version has the same public key and time.
 */
export function presenceOf(key: SeenKey, ours: SeenKey | undefined, known: KeyState | undefined): KeyMove['present'] {
  if (ours === undefined) return 'absent';
  if (ours.type !== key.type || ours.latestVersion > key.latestVersion) return 'other';
  const isComplete = ours.latestVersion === key.latestVersion;
  const isSame = ([version, { created, publicKey }]: readonly [number, VersionSeen], { times = true } = {}): boolean => {
    const one = ours.versions.get(version);
    return one !== undefined && one.publicKey === publicKey && (!times || secondsOf(one.created) === secondsOf(created));
  };
  if (known?.status === 'moved') {
    if (ours.latestVersion !== known.latestVersion) return 'other'; // rotated or replaced at the target
    // The key at the target may have been deleted, and another one created that has as many versions.
    const moved = [...key.versions].filter(([version]) => ours.versions.has(version));
    if (!moved.every((entry) => isSame(entry, { times: known.method === 'backup' }))) return 'other';
    return isComplete ? 'equal' : 'older';
  }
  if (known?.status === 'started' && known.method === 'import') return ours.imported ? 'older' : 'other';
  const areSame = [...key.versions].every((entry) => isSame(entry));
  // The peers show no versions of HMAC keys: then only the state file says whether the key is the same one.
  return isComplete && areSame && (key.versions.size > 0 || known?.status === 'started') ? 'equal' : 'other';
}
