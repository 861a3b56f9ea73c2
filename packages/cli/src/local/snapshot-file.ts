import { constants, createReadStream, createWriteStream, existsSync, linkSync, openAsBlob, renameSync, rmSync } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Streamed } from '@transitd/client';
import { StartError } from '@transitd/process';
import { readArchive, SnapshotError, type SnapshotMeta } from '@transitd/snapshot-archive';
import { StorageDamaged, StorageFailed, syncDirectory } from '@transitd/storage-fsm';

/** Metadata of a snapshot and the size of its state. */
export type Inspected = SnapshotMeta & { readonly stateBytes: number };

/** Reads a snapshot file and verifies its checksums. Only a server can verify its proof. @throws StartError */
export async function inspectSnapshot(file: string): Promise<Inspected> {
  try {
    const { meta, state } = await readArchive(createReadStream(file));
    return { ...meta, stateBytes: state.bytes };
  } catch (error) {
    if (error instanceof SnapshotError) throw new StartError(`${file}: ${error.message}`);
    throw fileError(file, error);
  }
}

const alreadyExists = (file: string): StartError => new StartError(`${file} already exists and is not overwritten`);

/** @throws StartError */
export function requireAbsent(file: string): void {
  if (existsSync(file)) throw alreadyExists(file);
}

/**
 * Saves a snapshot; the file gets its final name only when it is complete and verified.
 * @param received - called with the number of bytes so far
 * @throws StartError; errors of `take` and its stream
 */
export async function saveSnapshot(
  file: string,
  take: () => Promise<Streamed | Readable>,
  received: (bytes: number) => void = () => undefined,
): Promise<Inspected> {
  requireAbsent(file);
  const stream = await take();
  const source = stream instanceof Readable ? stream : Readable.fromWeb(stream as never);
  const part = `${file}.part`;
  try {
    await pipeline(source, counted(received), createWriteStream(part, { flags: 'wx', mode: 0o600, flush: true }));
    const inspected = await inspectSnapshot(part);
    linkWithoutOverwrite(part, file);
    await syncDirectory(dirname(file));
    return inspected;
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && syscall === 'open')
      throw new StartError(`${part} exists: delete it, unless another process is still writing it`);
    rmSync(part, { force: true });
    throw error instanceof StartError || error instanceof StorageDamaged || error instanceof StorageFailed
      ? error
      : fileError(part, error);
  }
}

/** Links instead of renaming, because a link never overwrites; without hard links, checks first and renames. @throws StartError */
function linkWithoutOverwrite(part: string, file: string): void {
  try {
    linkSync(part, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw alreadyExists(file);
    requireAbsent(file);
    renameSync(part, file);
    return;
  }
  try {
    rmSync(part);
  } catch {
    // The snapshot already has its final name. The leftover link is to the same file and takes no space.
  }
}

/** Passes chunks on and reports how many bytes there were. */
const counted = (report: (bytes: number) => void) =>
  async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const chunk of chunks) {
      bytes += chunk.length;
      report(bytes);
      yield chunk;
    }
  };

/**
 * Opens a file as a stream for a request.
 * @param sent - called with the number of bytes that were read, and the size of the file
 * @throws StartError
 */
export async function streamOf(file: string, sent: (bytes: number, of: number) => void = () => undefined): Promise<Streamed> {
  try {
    // The error of openAsBlob does not say why, and it accepts a folder.
    await access(file, constants.R_OK);
    if (!(await stat(file)).isFile()) throw new StartError(`${file} is not a regular file`);
    const blob = await openAsBlob(file);
    let bytes = 0;
    const counting = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.length;
        sent(bytes, blob.size);
        controller.enqueue(chunk);
      },
    });
    return (blob.stream() as unknown as Streamed).pipeThrough(counting as never);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw fileError(file, error);
  }
}

function fileError(file: string, error: unknown): StartError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new StartError(`${file} cannot be used: ${code ?? message}`);
}
