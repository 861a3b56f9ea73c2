import { StartError } from '@transitd/process';
import { type End, type MountSeen, transitMounts, unlessRefused } from './end.ts';

/** A mount of the source, and the mount at the same path of the target. */
export interface MountMove {
  readonly path: string;
  /** Undefined if the token of the source may not list mounts. */
  readonly source: MountSeen | undefined;
  /** Undefined if it must be created. */
  readonly target: MountSeen | undefined;
}

/**
 * Returns the mounts to move.
 * @param chosen - paths; all transit mounts when empty
 * @throws StartError if the token may not list the mounts and none is chosen, or a chosen one does not exist
 */
export async function mountMoves(source: End, target: End, chosen: readonly string[]): Promise<readonly MountMove[]> {
  const [theirs, ours] = [await transitMounts(source), await transitMounts(target)];
  if (ours === undefined) throw new StartError('the token of the target may not list mounts: it needs read on sys/mounts');
  const paths = chosen.length > 0 ? chosen.map((path) => path.replace(/^\/+|\/+$/g, '')) : theirs?.map(({ path }) => path);
  if (paths === undefined)
    throw new StartError(
      'the token of the source may not list mounts: name each transit mount with --mount, or allow it to read sys/mounts',
    );
  const unknown = theirs === undefined ? [] : paths.filter((path) => !theirs.some((mount) => mount.path === path));
  if (unknown.length > 0) throw new StartError(`the source has no transit engine at ${unknown.join(', ')}`);
  return paths.map((path) => ({
    path,
    source: theirs?.find((mount) => mount.path === path),
    target: ours.find((mount) => mount.path === path),
  }));
}

/**
 * Creates the mount at the target and copies its settings. A mount that already has keys stays unchanged.
 * @param prefix - of the new ciphertexts of a transitd target
 */
export async function prepareMount(
  { client, own }: End,
  { path, source, target }: MountMove,
  { prefix, isEmpty }: { readonly prefix: string; readonly isEmpty: boolean },
): Promise<void> {
  if (target !== undefined && !isEmpty) return;
  const description = source?.description ?? target?.description ?? '';
  const config = {
    ...(source !== undefined && { default_lease_ttl: `${source.defaultTtlS}s`, max_lease_ttl: `${source.maxTtlS}s` }),
    ...(own && { ciphertext_prefix: prefix }),
  };
  if (target === undefined) await client.sys.enableMount(path, { type: 'transit', description, config });
  // The comparison at the end reports settings that the target refuses.
  else await unlessRefused(client.sys.tuneMount(path, { description, ...config }));
  if (source?.disableUpsert === true)
    await unlessRefused(client.request('POST', `${path}/config/keys`, { disable_upsert: true }));
  if (source !== undefined && source.cacheSize > 0)
    await unlessRefused(client.request('POST', `${path}/cache-config`, { size: source.cacheSize }));
}

/** Returns what differs between the settings of a mount at both ends, one sentence each. */
export function mountDifferences({ source, target }: MountMove, prefix: string): readonly string[] {
  if (target === undefined) return [];
  const ends = [
    ['description', source?.description, target.description],
    ['default_lease_ttl', source?.defaultTtlS, target.defaultTtlS],
    ['max_lease_ttl', source?.maxTtlS, target.maxTtlS],
    ['disable_upsert', source?.disableUpsert, target.disableUpsert],
  ] as const;
  return [
    ...ends
      .filter(([, theirs, ours]) => source !== undefined && theirs !== ours)
      .map(
        ([name, theirs, ours]) => `${name} is ${JSON.stringify(theirs)} at the source and ${JSON.stringify(ours)} at the target`,
      ),
    ...(target.ciphertextPrefix !== undefined && target.ciphertextPrefix !== prefix
      ? [`ciphertext_prefix is ${target.ciphertextPrefix}: the source cannot decrypt new ciphertexts`]
      : []),
  ];
}
