import { createHash, randomBytes } from 'node:crypto';

/** Where a chain stands: what the next line names as the one before it. */
export interface Link {
  /** Of one writing process and sink, random. */
  readonly run: string;
  /** Of the line itself, or of the last one of its run; 0 before the first. */
  readonly seq: number;
  /** SHA-256 in hex of the line before, without its end; null where there is none. */
  readonly prev: string | null;
}

/** SHA-256 in hex of a line, without the newline at its end. */
export const lineHash = (line: Uint8Array | string): string => createHash('sha256').update(line).digest('hex');

/** @param prev - hash of the line that the file ends with; null for an empty one */
export const newRun = (prev: string | null): Link => ({ run: randomBytes(8).toString('hex'), seq: 0, prev });

/** The entry as a line at its place, without its end, and where the chain stands behind it. @param entry - a JSON object with members */
export function chained(entry: string, { run, seq, prev }: Link): { readonly line: string; readonly next: Link } {
  const line = `{"chain":${JSON.stringify({ run, seq: seq + 1, prev })},${entry.slice(1)}`;
  return { line, next: { run, seq: seq + 1, prev: lineHash(line) } };
}

/** Goes on behind what a file ends with. @param tail - hash of its last line, whole or torn; undefined for an empty file */
export function continued(link: Link | undefined, tail: string | undefined): Link {
  if (link !== undefined && (tail === undefined || tail === link.prev)) return link;
  return newRun(tail ?? null);
}

/** The place that a line names; undefined for what is no line of ours. */
export function placeIn(line: Buffer): Link | undefined {
  try {
    const entry: unknown = JSON.parse(line.toString('utf8'));
    const { run, seq, prev } = Object(Reflect.get(Object(entry), 'chain')) as Record<string, unknown>;
    const isPlace = typeof run === 'string' && Number.isSafeInteger(seq) && (prev === null || typeof prev === 'string');
    return isPlace ? { run, seq: seq as number, prev } : undefined;
  } catch {
    return undefined;
  }
}

/** What a check has seen so far of one chain, over one file or several. */
export interface Checked {
  readonly last?: Link;
  readonly hash?: string;
  /** The line before is no entry; the one behind it has to begin a run and to name it. */
  readonly torn?: true;
}

/**
 * One line more. A torn line, of a full disk or a crash, is no break when the entry behind it begins a run and names it.
 * @param beginsFile - nothing of the file stands before it
 * @returns how it goes on, or in `broken` why it does not
 */
export function checkLine(
  before: Checked,
  line: Buffer,
  { beginsFile }: { readonly beginsFile: boolean },
): { readonly after: Checked; readonly broken?: string; readonly beginsAnew?: true } {
  const place = placeIn(line);
  const hash = lineHash(line);
  if (place === undefined) return { after: { ...before, hash, torn: true } };
  const after: Checked = { last: place, hash };
  const isFirst = before.hash === undefined;
  const { last } = before;
  if (isFirst || (beginsFile && place.prev === null && place.seq === 1 && place.run !== last?.run))
    return isFirst && place.prev === null && place.seq === 1 ? { after } : { after, beginsAnew: true };
  if (place.prev !== before.hash) return { after, broken: 'it does not name the line before it' };
  if (place.seq === 1) return { after };
  if (before.torn === true) return { after, broken: 'the line before it is no entry' };
  if (last === undefined || place.run !== last.run || place.seq !== last.seq + 1)
    return { after, broken: `it is number ${place.seq}, which does not follow` };
  return { after };
}
