import { createHash, randomBytes } from 'node:crypto';
import type { Steps } from '@transitd/event-loop';

/** The end of a chain: the position of its last line, which the next line continues. Field names are those of the file. */
export interface Link {
  /** Random id of one process that writes to one device. */
  readonly run: string;
  /** Number of the last line within its run, from 1; 0 before the first. */
  readonly seq: number;
  /** SHA-256 in hex of the previous line without its newline; null in the first line. */
  readonly prev: string | null;
}

/** Returns the SHA-256 in hex of a line without its newline. */
export const lineHash = (line: Uint8Array | string): string => createHash('sha256').update(line).digest('hex');

/** Returns the link before this process's first entry. @param prev - hash of the last line of the file; null for an empty file */
export const newRun = (prev: string | null): Link => ({ run: randomBytes(8).toString('hex'), seq: 0, prev });

/** Bytes to hash in one step: a few milliseconds of work. */
const bytesPerStep = 1024 * 1024;

/**
 * Makes the entry a line of the chain, without its newline, and the end of the chain after it.
 * @param entry - the text of a JSON object that has members
 */
export function* linkEntry(
  entry: string,
  { run, seq, prev }: Link,
): Steps<{ readonly line: Buffer<ArrayBuffer>; readonly next: Link }> {
  const line = Buffer.from(`{"chain":${JSON.stringify({ run, seq: seq + 1, prev })},${entry.slice(1)}`);
  const hash = createHash('sha256');
  for (let at = 0; at < line.length; at += bytesPerStep) {
    if (at > 0) yield;
    hash.update(line.subarray(at, at + bytesPerStep));
  }
  return { line, next: { run, seq: seq + 1, prev: hash.digest('hex') } };
}

/**
 * Continues a chain in a file that is being opened: the same run if the file is empty or ends with its last line, else a new run.
 * @param tail - hash of the file's last line, complete or torn; undefined for an empty file
 */
export function continueChain(link: Link | undefined, tail: string | undefined): Link {
  if (link !== undefined && (tail === undefined || tail === link.prev)) return link;
  return newRun(tail ?? null);
}

/** Returns the position that a line claims; undefined when it is not an audit entry. */
export function readLink(line: Buffer): Link | undefined {
  try {
    const entry: unknown = JSON.parse(line.toString('utf8'));
    const { run, seq, prev } = Object(Reflect.get(Object(entry), 'chain')) as Record<string, unknown>;
    const isLink = typeof run === 'string' && Number.isSafeInteger(seq) && (prev === null || typeof prev === 'string');
    return isLink ? { run, seq: seq as number, prev } : undefined;
  } catch {
    return undefined;
  }
}

/** State of a check of one chain, in one or more files. */
export interface ChainCheck {
  /** Position of the last entry. */
  readonly last?: Link;
  /** Hash of the last line, which need not be an entry. */
  readonly hash?: string;
  /** The last line is not an entry. The next entry must start a run and have the hash of this line as `prev`. */
  readonly torn?: true;
}

/**
 * Checks the next line. A torn line, from a full disk or a crash, does not break the chain if the next entry starts a run and has the hash
 * of the torn line as `prev`.
 * @param isFirstInFile - the line is the first of its file
 * @returns the state after it; in `broken`, why the chain is broken there; `startsChain` when earlier entries are missing from the files
 */
export function checkLine(
  before: ChainCheck,
  line: Buffer,
  { isFirstInFile }: { readonly isFirstInFile: boolean },
): { readonly after: ChainCheck; readonly broken?: string; readonly startsChain?: true } {
  const link = readLink(line);
  const hash = lineHash(line);
  if (link === undefined) return { after: { ...before, hash, torn: true } };
  const after: ChainCheck = { last: link, hash };
  const isFirst = before.hash === undefined;
  const { last } = before;
  if (isFirst || (isFirstInFile && link.prev === null && link.seq === 1 && link.run !== last?.run))
    return isFirst && link.prev === null && link.seq === 1 ? { after } : { after, startsChain: true };
  if (link.prev !== before.hash) return { after, broken: '"prev" is not the hash of the previous line' };
  if (link.seq === 1) return { after };
  if (before.torn === true) return { after, broken: 'the previous line is not an entry' };
  if (last === undefined || link.run !== last.run || link.seq !== last.seq + 1)
    return { after, broken: `number ${link.seq} does not follow the previous entry` };
  return { after };
}
