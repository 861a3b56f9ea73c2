import { addToDigest, emptyDigest, recordDigest } from './digest.ts';
import { type Attempt, isDead, rerouted, type Spaces, spaceHead } from './spaces.ts';

/** A record as a restore brings it: what reads as `path` once the restore is live. */
export interface RestoredRecord {
  readonly path: string;
  readonly value: Uint8Array;
}

/**
 * One step of a restore, a log entry of its own. Steps of one attempt may be proposed again at any time: what has happened already
 * changes nothing and is answered as done.
 */
export type RestoreStep =
  /** Chunk 0 begins the attempt and ends any other. */
  | { readonly kind: 'stage'; readonly attempt: string; readonly chunk: number; readonly records: readonly RestoredRecord[] }
  /** Makes what was staged the state, all at once, if it is exactly this; paths below `keep` stay as they are. */
  | {
      readonly kind: 'swap';
      readonly attempt: string;
      readonly records: number;
      /** Sum of the digests of the records, each as if at revision 0. */
      readonly digest: bigint;
      /** Of the state that is restored: the count is never lower from then on. */
      readonly valuesWritten: number;
      readonly keep: readonly string[];
    }
  | { readonly kind: 'abandon'; readonly attempt: string }
  /** Deletes those of the named records that nothing leads to. */
  | { readonly kind: 'sweep'; readonly names: readonly string[] };

/** What a step does: the names it writes, and the spaces afterwards when they change. */
export interface RestoreEffect {
  readonly writes: readonly { readonly name: string; readonly value: Uint8Array | null }[];
  readonly spaces?: Spaces;
}

const nothing: RestoreEffect = { writes: [] };

/** What a record adds to the sum that a swap is checked against; it has no revision before it is restored. */
export const restoredDigest = ({ path, value }: RestoredRecord): bigint => recordDigest({ path, value, revision: 0 });

/** Pure, so that every node does the same. `conflict`: this is not the next step of the attempt that is being staged. */
export function applyRestoreStep(step: RestoreStep, spaces: Spaces): RestoreEffect | 'conflict' {
  switch (step.kind) {
    case 'stage':
      return spaces.live === step.attempt ? nothing : stage(step, spaces);
    case 'swap':
      return spaces.live === step.attempt ? nothing : swap(step, spaces);
    case 'abandon':
      return spaces.attempt?.id === step.attempt ? { writes: [], spaces: { ...spaces, attempt: undefined } } : nothing;
    case 'sweep':
      return { writes: step.names.filter((name) => isDead(spaces, name)).map((name) => ({ name, value: null })) };
  }
}

function stage({ attempt: id, chunk, records }: RestoreStep & { kind: 'stage' }, spaces: Spaces): RestoreEffect | 'conflict' {
  const isNew = spaces.attempt?.id !== id;
  if (isNew && chunk > 0) return 'conflict';
  const attempt: Attempt =
    isNew || spaces.attempt === undefined
      ? { id, space: spaces.nextSpace, chunks: 0, records: 0, digest: emptyDigest }
      : spaces.attempt;
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

function swap(
  { attempt: id, records, digest, keep }: RestoreStep & { kind: 'swap' },
  spaces: Spaces,
): RestoreEffect | 'conflict' {
  const { attempt } = spaces;
  if (attempt?.id !== id || attempt.records !== records || attempt.digest !== digest) return 'conflict';
  return { writes: [], spaces: { ...spaces, routes: rerouted(spaces, attempt.space, keep), attempt: undefined, live: id } };
}
