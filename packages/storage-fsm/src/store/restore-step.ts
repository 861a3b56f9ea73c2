import { recordDigest } from './digest.ts';
import { noEffect, type StepEffect } from './replication-step.ts';
import { attemptOf, isUnreachable, type Spaces, staged, stagedAttempt, withLive } from './spaces.ts';

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

/** Returns a record's share of the sum that a swap checks. It is computed with revision 0: before the restore there is no revision. */
export const restoredDigest = ({ path, value }: RestoredRecord): bigint => recordDigest({ path, value, revision: 0 });

/**
 * Returns the effect of a step; a pure function, so that it is the same on every node. `conflict`: this is not the next step of the attempt
 * that is being staged.
 */
export function applyRestoreStep(step: RestoreStep, spaces: Spaces): StepEffect | 'conflict' {
  switch (step.kind) {
    case 'stage':
      return spaces.live === step.attempt ? noEffect : stage(step, spaces);
    case 'swap':
      return spaces.live === step.attempt ? noEffect : swap(step, spaces);
    case 'abandon':
      return spaces.attempt?.id === step.attempt ? { ...noEffect, spaces: { ...spaces, attempt: undefined } } : noEffect;
    case 'sweep':
      return {
        ...noEffect,
        writes: step.names.filter((name) => isUnreachable(spaces, name)).map((name) => ({ name, value: null })),
      };
  }
}

function stage({ attempt: id, chunk, records }: RestoreStep & { kind: 'stage' }, spaces: Spaces): StepEffect | 'conflict' {
  const attempt = attemptOf(spaces, id);
  if (attempt === undefined) return 'conflict';
  if (chunk < attempt.chunks) return noEffect;
  if (chunk > attempt.chunks) return 'conflict';
  return { ...noEffect, ...staged(spaces, attempt, records, restoredDigest) };
}

function swap(step: RestoreStep & { kind: 'swap' }, spaces: Spaces): StepEffect | 'conflict' {
  const attempt = stagedAttempt(spaces, step);
  if (attempt === undefined) return 'conflict';
  const valuesWritten = { added: 0, atLeast: step.valuesWritten };
  return { ...noEffect, spaces: withLive(spaces, attempt, step.keep), valuesWritten };
}
