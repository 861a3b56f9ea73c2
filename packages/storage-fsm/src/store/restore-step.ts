import { addToDigest, recordDigest } from './digest.ts';
import { attemptOf, isUnreachable, type Spaces, spaceHead, stagedAttempt, withLive } from './spaces.ts';

/** A record of the snapshot that is being restored. Readers see it as `path` once the restore is live. */
export interface RestoredRecord {
  readonly path: string;
  readonly value: Uint8Array;
}

/**
 * One step of a restore; each is one log entry. A step may be proposed again at any time: if it was already applied, it changes nothing and
 * succeeds.
 */
export type RestoreStep =
  /** Stages records where no reader sees them. Chunk 0 begins the attempt and ends any other attempt. */
  | { readonly kind: 'stage'; readonly attempt: string; readonly chunk: number; readonly records: readonly RestoredRecord[] }
  /**
   * Makes the staged records the state, atomically, if they have the given count and digest. The records below the prefixes in `keep` stay
   * as they are.
   */
  | {
      readonly kind: 'swap';
      readonly attempt: string;
      readonly records: number;
      /** Sum of the digests of the records, each computed with revision 0. */
      readonly digest: bigint;
      /** The count of values written in the restored state. The present count is raised to it. */
      readonly valuesWritten: number;
      readonly keep: readonly string[];
    }
  | { readonly kind: 'abandon'; readonly attempt: string }
  /** Deletes the named records that are unreachable. */
  | { readonly kind: 'sweep'; readonly names: readonly string[] };

/** The effect of a step: the records it writes, by name, and the new spaces if they change. */
export interface RestoreEffect {
  readonly writes: readonly { readonly name: string; readonly value: Uint8Array | null }[];
  readonly spaces?: Spaces;
}

const nothing: RestoreEffect = { writes: [] };

/** Returns a record's share of the sum that a swap checks. It is computed with revision 0: before the restore there is no revision. */
export const restoredDigest = ({ path, value }: RestoredRecord): bigint => recordDigest({ path, value, revision: 0 });

/**
 * Returns the effect of a step; a pure function, so that it is the same on every node. `conflict`: this is not the next step of the attempt
 * that is being staged.
 */
export function applyRestoreStep(step: RestoreStep, spaces: Spaces): RestoreEffect | 'conflict' {
  switch (step.kind) {
    case 'stage':
      return spaces.live === step.attempt ? nothing : stage(step, spaces);
    case 'swap':
      return spaces.live === step.attempt ? nothing : swap(step, spaces);
    case 'abandon':
      return spaces.attempt?.id === step.attempt ? { writes: [], spaces: { ...spaces, attempt: undefined } } : nothing;
    case 'sweep':
      return { writes: step.names.filter((name) => isUnreachable(spaces, name)).map((name) => ({ name, value: null })) };
  }
}

function stage({ attempt: id, chunk, records }: RestoreStep & { kind: 'stage' }, spaces: Spaces): RestoreEffect | 'conflict' {
  const attempt = attemptOf(spaces, id);
  if (attempt === undefined) return 'conflict';
  if (chunk < attempt.chunks) return nothing;
  if (chunk > attempt.chunks) return 'conflict';
  const head = spaceHead(attempt.space);
  const digest = records.map(restoredDigest).reduce(addToDigest, attempt.digest);
  return {
    writes: records.map(({ path, value }) => ({ name: head + path, value })),
    spaces: {
      ...spaces,
      nextSpace: Math.max(spaces.nextSpace, attempt.space + 1),
      attempt: { ...attempt, chunks: chunk + 1, records: attempt.records + records.length, digest },
    },
  };
}

function swap(step: RestoreStep & { kind: 'swap' }, spaces: Spaces): RestoreEffect | 'conflict' {
  const attempt = stagedAttempt(spaces, step);
  return attempt === undefined ? 'conflict' : { writes: [], spaces: withLive(spaces, attempt, step.keep) };
}
