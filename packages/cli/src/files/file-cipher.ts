import type { FileHandle } from 'node:fs/promises';
import {
  DamagedStream,
  dataKeyBytes,
  decodeFileHeader,
  encodeFileHeader,
  type FileHeader,
  fileHeaderBytesMax,
  fileParameters,
  SegmentCipher,
} from '@transitd/client';
import { StartError } from '@transitd/process';
import { failureOf, openSource, PartFile, readAt, writeAt } from './part-file.ts';
import { identityOf, isSettled } from './source-identity.ts';

/** The calls to the service: a data key for a new file, and that of an existing one. 32 bytes. */
export interface DataKeys {
  readonly create: () => Promise<{ readonly plaintext: Uint8Array; readonly wrapped: string }>;
  readonly open: (wrapped: string) => Promise<Uint8Array>;
}

export interface FileTask {
  readonly input: string;
  readonly output: string;
  /** Name of the key that wraps the data key. */
  readonly key: string;
  readonly dataKeys: DataKeys;
  /** Continue with an interrupted output. */
  readonly resume: boolean;
  /** @param of - size of the input */
  readonly progress: (done: number, of: number) => void;
  /** Size of a segment of a new file; 1 MiB when absent. */
  readonly segmentBytes?: number;
  /** UTC in milliseconds. */
  readonly nowMs?: () => number;
}

/** A new or existing stream behind its header. */
interface Opened {
  readonly cipher: SegmentCipher;
  /** Where the first segment begins in the encrypted file. */
  readonly start: number;
}

/**
 * Encrypts a file. An interrupted output is continued only if the input is the same unchanged file: its identity (device, number, size, and
 * the times of its last changes) is part of the header, from which the keys of the segments are derived. So no nonce is used twice.
 * Segments that are there already are encrypted again and compared.
 * @returns the size of the output in bytes
 * @throws StartError, DamagedStream; errors of `dataKeys`
 */
export async function encryptFile(task: FileTask): Promise<number> {
  const { file: input, stats } = await openSource(task.input);
  try {
    const size = Number(stats.size);
    const { nowMs = Date.now } = task;
    const source = identityOf(stats);
    const resumable = isSettled(stats, nowMs()) ? source : undefined;
    const output = await PartFile.open(task.output, task);
    try {
      const present = task.resume ? Number((await output.file.stat()).size) : 0;
      const { cipher, start } =
        present === 0 ? await newStream(output.file, task, resumable) : await startedStream(output.file, task, source);
      const end = await copySegments(task, size, {
        sizeOf: (number) => cipher.plaintextBytes(number),
        from: { file: input, start: 0 },
        to: { file: output.file, start, present },
        convert: (number, isLast, bytes) => cipher.encrypt(number, isLast, bytes),
        differs: () => new DamagedStream('the interrupted output is damaged: delete it and start again'),
      });
      if (identityOf(await input.stat({ bigint: true })) !== source)
        throw new DamagedStream(`${task.input} changed while it was read`);
      await output.finish(end);
      return end;
    } catch (error) {
      await (error instanceof DamagedStream && !task.resume ? output.discard() : output.keep());
      throw failureOf(error, task);
    }
  } finally {
    await input.close();
  }
}

/**
 * Decrypts a file. The output gets its name only when the last segment was verified. After an interruption, everything is verified again,
 * and compared with the output.
 * @returns the size of the output in bytes
 * @throws StartError, DamagedStream; errors of `dataKeys`
 */
export async function decryptFile(task: FileTask): Promise<number> {
  const { file: input, stats } = await openSource(task.input);
  try {
    const { cipher, start } = await existingStream(input, task);
    const output = await PartFile.open(task.output, task);
    try {
      const end = await copySegments(task, Number(stats.size), {
        sizeOf: (number) => cipher.ciphertextBytes(number),
        from: { file: input, start },
        to: { file: output.file, start: 0, present: task.resume ? Number((await output.file.stat()).size) : 0 },
        convert: (number, isLast, bytes) => cipher.decrypt(number, isLast, bytes),
        differs: () => new DamagedStream('the interrupted output is damaged: delete it and start again'),
      });
      await output.finish(end);
      return end;
    } catch (error) {
      // Nothing of a file that was tampered with stays.
      await (error instanceof DamagedStream ? output.discard() : output.keep());
      throw failureOf(error, task);
    }
  } finally {
    await input.close();
  }
}

interface Copy {
  /** Size of a full segment of the input. */
  readonly sizeOf: (number: number) => number;
  readonly from: { readonly file: FileHandle; readonly start: number };
  /** `present`: how many bytes the output has from an earlier run */
  readonly to: { readonly file: FileHandle; readonly start: number; readonly present: number };
  readonly convert: (number: number, isLast: boolean, bytes: Uint8Array) => Promise<Uint8Array>;
  readonly differs: () => Error;
}

/** Converts one segment after the other, with the memory of a few segments. Returns the end of the output. */
async function copySegments({ progress }: FileTask, size: number, { sizeOf, from, to, convert, differs }: Copy): Promise<number> {
  const buffer = new Uint8Array(Math.max(sizeOf(0), sizeOf(1)));
  const comparison = new Uint8Array(buffer.length + 64);
  let [read, written] = [from.start, to.start];
  for (let number = 0; ; number++) {
    const bytes = await readAt(from.file, buffer.subarray(0, sizeOf(number)), read);
    read += bytes.length;
    const isLast = read >= size;
    if (!isLast && bytes.length < sizeOf(number)) throw new DamagedStream('the input became shorter while it was read');
    const converted = await convert(number, isLast, bytes);
    const known = Math.min(Math.max(to.present - written, 0), converted.length);
    if (known > 0 && !equal(await readAt(to.file, comparison.subarray(0, known), written), converted.subarray(0, known)))
      throw differs();
    if (known < converted.length) await writeAt(to.file, converted.subarray(known), written + known);
    written += converted.length;
    progress(Math.min(read, size), size);
    if (isLast) return written;
  }
}

const equal = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0;

async function newStream(
  output: FileHandle,
  { key, dataKeys, segmentBytes = fileParameters.segmentBytes }: FileTask,
  source: string | undefined,
): Promise<Opened> {
  const { plaintext, wrapped } = await dataKeys.create();
  if (plaintext.length !== dataKeyBytes) throw new StartError('the service returned no data key of 32 bytes');
  const header = encodeFileHeader({ key, datakey: wrapped, segmentBytes, ...(source !== undefined && { source }) });
  const cipher = await SegmentCipher.create(plaintext, header.associatedData, { ...fileParameters, segmentBytes });
  plaintext.fill(0);
  const whole = Buffer.concat([header.bytes, cipher.header]);
  await writeAt(output, whole, 0);
  return { cipher, start: whole.length };
}

/** Opens the stream of an interrupted encryption. @throws StartError if its input was another file, or has changed */
async function startedStream(output: FileHandle, task: FileTask, source: string): Promise<Opened> {
  const opened = await existingStream(output, task);
  if (opened.header.source === undefined)
    throw new StartError(
      `${task.input} was changed just before its encryption began, so it cannot be continued: delete ${task.output}.part`,
    );
  if (opened.header.source !== source)
    throw new StartError(
      `${task.input} is not the file whose encryption was interrupted, or it has changed: delete ${task.output}.part`,
    );
  return opened;
}

async function existingStream(file: FileHandle, { key, dataKeys }: FileTask): Promise<Opened & { readonly header: FileHeader }> {
  const headerBytes = SegmentCipher.headerBytes(fileParameters);
  const start = await readAt(file, new Uint8Array(fileHeaderBytesMax + headerBytes), 0);
  const decoded = decodeFileHeader(start);
  if (decoded === undefined) throw new DamagedStream('the header of the file is truncated');
  const { header, associatedData, bytes } = decoded;
  if (header.key !== key) throw new StartError(`the file names another key: ${JSON.stringify(header.key)}`);
  const dataKey = await dataKeys.open(header.datakey);
  if (dataKey.length !== dataKeyBytes) throw new DamagedStream('the data key of the file is of another size');
  const streamHeader = start.slice(bytes, bytes + headerBytes);
  const parameters = { ...fileParameters, segmentBytes: header.segmentBytes };
  const cipher = await SegmentCipher.create(dataKey, associatedData, parameters, streamHeader).finally(() => dataKey.fill(0));
  return { cipher, header, start: bytes + headerBytes };
}
