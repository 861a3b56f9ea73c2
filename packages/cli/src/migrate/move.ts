import { RefusedError } from '@transitd/client';
import { copyByBackup, copyByImport, type Protection, type Route } from './copy-key.ts';
import { differences, weakenedProtection } from './differences.ts';
import { type End, keyNames, readKey } from './end.ts';
import { UnreadableExport } from './exported-material.ts';
import { methodOf, type Permission } from './method.ts';
import { mountDifferences, mountMoves, prepareMount } from './mounts.ts';
import { permitAtSource } from './permission.ts';
import { type KeyMove, type Plan, presenceOf } from './plan.ts';
import { writePolicy } from './policies.ts';
import { sampleKey } from './sample.ts';
import type { MoveState } from './state-file.ts';

/** The result for one key, mount or policy. */
export interface Outcome {
  readonly kind: 'key' | 'mount' | 'policy';
  /** `mount/key`, a mount path, or the name of a policy. */
  readonly name: string;
  /** `checked`: equal at both ends, and all samples succeeded. */
  readonly state: 'checked' | 'differs' | 'not moved';
  readonly method?: 'backup' | 'import';
  /** How many samples succeeded. */
  readonly samples?: number;
  /** Differences, or the reason why it was not moved. */
  readonly remarks: readonly string[];
}

export interface MoveOptions {
  readonly granted: ReadonlySet<Permission>;
  readonly state: MoveState;
  /** Prefix of new ciphertexts at a transitd target. */
  readonly ciphertextPrefix: string;
  /** Called before each step. */
  readonly progress: (done: number, of: number, what: string) => void;
}

/** How often a key is moved again because it was rotated meanwhile. */
const roundsMax = 3;

/** Carries out a plan, then compares both ends. @throws RefusedError, UnansweredError, StartError */
export async function carryOut(source: End, target: End, plan: Plan, options: MoveOptions): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const mount of plan.mounts) {
    const isEmpty = mount.target === undefined || (await keyNames(target, mount.path)).length === 0;
    await prepareMount(target, mount, { prefix: options.ciphertextPrefix, isEmpty });
  }
  for (const [at, move] of plan.keys.entries()) {
    options.progress(at, plan.keys.length, `${move.mount}/${move.key.name}`);
    outcomes.push(await moveAndCheck({ source, target, mount: move.mount }, move, options));
  }
  // The move of the other keys took time, in which a key may have been rotated.
  for (const [at, move] of plan.keys.entries()) {
    const { mount, key } = move;
    options.progress(at, plan.keys.length, `${mount}/${key.name}, once more`);
    const known = options.state.key(mount, key.name);
    if (known?.status === 'moved')
      outcomes[at] = await moveAndCheck({ source, target, mount }, move, options, async () => {
        const now = await readKey(source, mount, key.name);
        return now !== undefined && now.latestVersion > known.latestVersion ? undefined : outcomes[at];
      });
  }
  for (const policy of plan.policies ?? []) outcomes.push(await movePolicy(target, policy));
  const paths = plan.mounts.map(({ path }) => path);
  for (const mount of await mountMoves(source, target, paths)) {
    const remarks = mountDifferences(mount, options.ciphertextPrefix);
    outcomes.push({ kind: 'mount', name: mount.path, state: remarks.length === 0 ? 'checked' : 'differs', remarks });
  }
  return outcomes;
}

async function movePolicy(target: End, policy: NonNullable<Plan['policies']>[number]): Promise<Outcome> {
  const outcome = { kind: 'policy', name: policy.name } as const;
  if (policy.state === 'differs')
    return {
      ...outcome,
      state: 'differs',
      remarks: ['a policy of this name with another text is at the target, and was not replaced'],
    };
  const refused = policy.state === 'equal' ? undefined : await writePolicy(target, policy);
  return refused === undefined
    ? { ...outcome, state: 'checked', remarks: [] }
    : { ...outcome, state: 'not moved', remarks: [refused] };
}

/** @param done - returns an outcome if there is nothing to do */
async function moveAndCheck(
  route: Route,
  { mount, key: planned, method }: KeyMove,
  options: MoveOptions,
  done: () => Promise<Outcome | undefined> = async () => undefined,
): Promise<Outcome> {
  const name = `${mount}/${planned.name}`;
  const notMoved = (...remarks: readonly string[]): Outcome => ({ kind: 'key', name, state: 'not moved', remarks });
  try {
    const outcome = await done();
    if (outcome !== undefined) return outcome;
    for (let round = 1; round <= roundsMax; round++) {
      const moved = await moveKey(route, planned.name, options);
      if (moved !== undefined) return notMoved(moved);
      const outcome = await check(route, planned.name, options);
      if (outcome !== 'rotated') return outcome;
    }
    return notMoved(
      'it was rotated repeatedly during the move: stop automatic rotation at the source, and run the command again',
    );
  } catch (error) {
    if (error instanceof UnreadableExport) return notMoved(error.message);
    if (!(error instanceof RefusedError)) throw error;
    const losses = method.kind === 'import' ? method.losses : [];
    return notMoved(`refused with ${error.status}: ${error.message.replace(/\s+/g, ' ')}`, ...losses);
  }
}

/** Moves a key unless it is already there. Returns the reason if it cannot be moved. */
async function moveKey(route: Route, name: string, { granted, state }: MoveOptions): Promise<string | undefined> {
  const { source, target, mount } = route;
  const [key, ours] = [await readKey(source, mount, name), await readKey(target, mount, name)];
  if (key === undefined) return 'it was deleted at the source';
  const known = state.key(mount, name);
  const present = presenceOf(key, ours, known);
  if (present === 'other') return 'another key of this name is at the target, and was not replaced';
  const method = methodOf(key, { source, target, granted });
  if (present === 'equal') {
    if (known?.status !== 'moved') {
      const kind = known?.method ?? (method.kind === 'import' ? 'import' : 'backup');
      const before = known?.before ?? protectionOf(key);
      await state.record(mount, name, { status: 'moved', method: kind, latestVersion: key.latestVersion, before });
    }
    return undefined;
  }
  if (method.kind === 'impossible' || method.kind === 'rewrap') return method.why;
  const before = known?.before ?? protectionOf(key);
  const entry = { method: method.kind, latestVersion: key.latestVersion, before } as const;
  await state.record(mount, name, { ...entry, status: 'started' });
  let isCreated = present === 'older';
  const created = (): void => {
    isCreated = true;
  };
  try {
    // A backup for a peer is made from exports.
    await permitAtSource(source, { mount, key }, granted, target.own ? method.kind : 'import');
    if (method.kind === 'backup') await copyByBackup(route, key, { before: entry.before, overwrite: present === 'older' });
    else await copyByImport(route, key, { before: entry.before, present: ours?.latestVersion ?? 0, created });
  } catch (error) {
    const isRefused = error instanceof UnreadableExport || (error instanceof RefusedError && error.outcome === 'not_done');
    if (isRefused && !isCreated) await state.record(mount, name, { ...entry, status: 'refused' });
    throw error;
  }
  await state.record(mount, name, { ...entry, status: 'moved' });
  return undefined;
}

const protectionOf = ({ exportable, allowPlaintextBackup }: Protection): Protection => ({ exportable, allowPlaintextBackup });

/** Compares both ends and lets the target decrypt and verify samples of the source. */
async function check(route: Route, name: string, { state }: MoveOptions): Promise<Outcome | 'rotated'> {
  const { source, target, mount } = route;
  const method = state.key(mount, name)?.method ?? 'backup';
  const [key, ours] = [await readKey(source, mount, name), await readKey(target, mount, name)];
  const outcome = { kind: 'key', name: `${mount}/${name}`, method } as const;
  if (key === undefined || ours === undefined)
    return { ...outcome, state: 'not moved', remarks: [`it was deleted at the ${key === undefined ? 'source' : 'target'}`] };
  if (presenceOf(key, ours, state.key(mount, name)) === 'older') return 'rotated';
  const samples = await sampleKey(route, key, { hmacSecrets: method === 'backup' || key.type === 'hmac' });
  if ((await readKey(source, mount, name))?.latestVersion !== key.latestVersion) return 'rotated';
  const failed = samples.flatMap(({ version, operation, failure }) =>
    failure === undefined ? [] : [`${operation} with version ${version}: ${failure}`],
  );
  // A backup of transitd cannot be changed, so it arrives with the protection that the key has at the source now.
  const before = source.own && target.own && method === 'backup' ? key : (state.key(mount, name)?.before ?? key);
  const remarks = [...differences(key, ours, { times: method === 'backup' }), ...weakenedProtection(before, ours), ...failed];
  const succeeded = samples.length - failed.length;
  return { ...outcome, state: remarks.length === 0 ? 'checked' : 'differs', samples: succeeded, remarks };
}
