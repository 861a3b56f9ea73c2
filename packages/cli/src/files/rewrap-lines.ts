import type { FileHandle } from 'node:fs/promises';
import { StartError } from '@transitd/process';
import { type Span, stringMember } from './json-member.ts';
import { linesOf } from './lines.ts';
import { failureOf, fileError, openSource, PartFile, writeAt } from './part-file.ts';
import { identityOf } from './source-identity.ts';
import { SourceNote } from './source-note.ts';

/** The members of a line that go to the service. `context` and `associated_data` are base64. */
export interface RewrapItem {
  readonly ciphertext: string;
  readonly context?: string;
  readonly associated_data?: string;
}

/** The result for an item: a new ciphertext, or the reason why the item failed. */
export type Rewrapped = { readonly ciphertext: string } | { readonly error: string };

export interface RewrapTask {
  /**
   * JSON lines: objects with `ciphertext`, and optionally `context` and `associated_data`. Everything else in a line stays as it is, byte
   * for byte.
   */
  readonly input: string;
  readonly output: string;
  /** Continue with `<output>.part`. */
  readonly resume: boolean;
  /** Rewraps a batch; the results have the order of the items. */
  readonly rewrap: (items: readonly RewrapItem[]) => Promise<readonly Rewrapped[]>;
  /** @param of - size of the input in bytes */
  readonly progress: (doneBytes: number, ofBytes: number, lines: number) => void;
  /** Called for each line that stays as it was. @param line - from 1 */
  readonly failed: (line: number, reason: string) => void;
}

export interface RewrapSummary {
  readonly lines: number;
  readonly rewrapped: number;
  readonly failed: number;
}

/** Limits of one request: far below those of the service, so that a batch does not delay other requests. */
const [batchLinesMax, batchBytesMax] = [500, 4 * 1024 * 1024];
const lineBytesMax = 32 * 1024 * 1024;

/**
 * Rewraps a file of JSON lines. The output has one line for each line of the input, in the same order, so that an interrupted run can be
 * continued; a line that cannot be rewrapped stays unchanged. The output gets its name when it is complete.
 * @throws StartError for a line that is not valid, and for an input that changed since or during the run; errors of `rewrap`
 */
export async function rewrapLines(task: RewrapTask): Promise<RewrapSummary> {
  const { file: input, stats } = await openSource(task.input);
  const output = await PartFile.open(task.output, task).catch(async (error: unknown) => {
    await input.close();
    throw error;
  });
  const [identity, note] = [identityOf(stats), new SourceNote(task.output)];
  try {
    const run = new Run(task, output.file, Number(stats.size));
    if ((await output.file.stat()).size === 0) await note.write(identity);
    else {
      await note.require(identity, task.input);
      await run.skipPresent();
    }
    const summary = await run.all(input);
    if (identityOf(await input.stat({ bigint: true })) !== identity)
      throw new StartError(`${task.input} changed while it was read: delete ${task.output}.part and start again`);
    await output.finish(run.writtenBytes);
    await note.delete();
    return summary;
  } catch (error) {
    if (!(await output.keep())) await note.delete();
    throw failureOf(error, task);
  } finally {
    await input.close();
  }
}

interface Line {
  readonly number: number;
  readonly text: string;
  readonly item: RewrapItem;
  /** Where the ciphertext is in the text, with its quotes. */
  readonly ciphertext: Span;
}

class Run {
  readonly #task: RewrapTask;
  readonly #output: FileHandle;
  readonly #size: number;
  writtenBytes = 0;
  /** How many lines the output has from an earlier run. */
  #present = 0;
  #batch: Line[] = [];
  #batchBytes = 0;
  #counts = { lines: 0, rewrapped: 0, failed: 0 };

  constructor(task: RewrapTask, output: FileHandle, size: number) {
    this.#task = task;
    this.#output = output;
    this.#size = size;
  }

  /** Finds the end of the last valid line of an interrupted output. After a loss of power, a file may end in zeros. */
  async skipPresent(): Promise<void> {
    for await (const { number, text, endByte, isEnded } of linesOf(this.#output, `${this.#task.output}.part`, lineBytesMax)) {
      if (!isEnded || lineFrom(text, number) === undefined) return;
      [this.#present, this.writtenBytes] = [number, endByte];
    }
  }

  async all(input: FileHandle): Promise<RewrapSummary> {
    for await (const { number, text, endByte } of linesOf(input, this.#task.input, lineBytesMax)) {
      this.#counts.lines = number;
      if (number <= this.#present) continue;
      const line = lineFrom(text, number);
      if (line === undefined)
        throw new StartError(`line ${number} of ${this.#task.input} is not a JSON object with one ciphertext`);
      this.#batch.push(line);
      this.#batchBytes += text.length;
      if (this.#batch.length >= batchLinesMax || this.#batchBytes >= batchBytesMax) await this.#flush();
      this.#task.progress(Math.min(endByte, this.#size), this.#size, number);
    }
    await this.#flush();
    return this.#counts;
  }

  async #flush(): Promise<void> {
    const [batch] = [this.#batch];
    if (batch.length === 0) return;
    [this.#batch, this.#batchBytes] = [[], 0];
    const results = await this.#task.rewrap(batch.map(({ item }) => item));
    if (results.length !== batch.length) throw new Error('the service returned another number of results');
    const lines = batch.map(({ number, text, ciphertext: { start, end } }, at) => {
      const result = results[at] as Rewrapped;
      if ('error' in result) {
        this.#counts = { ...this.#counts, failed: this.#counts.failed + 1 };
        this.#task.failed(number, result.error);
        return text;
      }
      this.#counts = { ...this.#counts, rewrapped: this.#counts.rewrapped + 1 };
      return `${text.slice(0, start)}${JSON.stringify(result.ciphertext)}${text.slice(end)}`;
    });
    const bytes = Buffer.from(`${lines.join('\n')}\n`);
    await writeAt(this.#output, bytes, this.writtenBytes);
    this.writtenBytes += bytes.length;
  }
}

/**
 * Counts the ciphertexts of each key version in a file of JSON lines.
 * @returns pairs of a version and its count, in the order of the versions
 * @throws StartError for a line that is not valid, and for a file without lines: an export that failed would look as if nothing were old
 */
export async function countVersions(path: string): Promise<readonly (readonly [version: number, count: number])[]> {
  const { file } = await openSource(path);
  const counts = new Map<number, number>();
  try {
    for await (const { number, text } of linesOf(file, path, lineBytesMax)) {
      const ciphertext = lineFrom(text, number)?.item.ciphertext;
      const version = Number(/^[^:]+:v([1-9]\d*):/.exec(ciphertext ?? '')?.[1]);
      if (Number.isNaN(version)) throw new StartError(`line ${number} of ${path} is not a JSON object with one ciphertext`);
      counts.set(version, (counts.get(version) ?? 0) + 1);
    }
  } catch (error) {
    throw fileError(path, error);
  } finally {
    await file.close();
  }
  if (counts.size === 0) throw new StartError(`${path} has no lines`);
  return [...counts].sort(([one], [other]) => one - other);
}

/** Returns undefined if the line is not a JSON object with one ciphertext. */
function lineFrom(text: string, number: number): Line | undefined {
  const members = objectIn(text);
  const span = members === undefined ? undefined : stringMember(text, 'ciphertext');
  if (members === undefined || span === undefined || typeof members['ciphertext'] !== 'string') return undefined;
  const { ciphertext, context, associated_data } = members;
  const bound = {
    ...(typeof context === 'string' && { context }),
    ...(typeof associated_data === 'string' && { associated_data }),
  };
  return { number, text, item: { ciphertext, ...bound }, ciphertext: span };
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}
