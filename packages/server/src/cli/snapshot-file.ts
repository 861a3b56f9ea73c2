import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openAsBlob,
  openSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Streamed } from '@transitd/client';
import { StartError } from '../exit.ts';
import { RequestError } from '../http/error-answer.ts';
import { readArchive, type SnapshotMeta } from '../snapshot/archive.ts';

/** What a snapshot says of itself, and how much it holds. */
export type Inspected = SnapshotMeta & { readonly stateBytes: number };

/** All checksums of the file hold; whose key sealed it, only a server can say. @throws StartError */
export async function inspectSnapshot(file: string): Promise<Inspected> {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-snapshot-'));
  try {
    const { meta, state } = await readArchive(createReadStream(file), {
      statePath: join(folder, 'state.bin'),
      bytesMax: Number.POSITIVE_INFINITY,
      watch: () => undefined,
    });
    return { ...meta, stateBytes: state.bytes };
  } catch (error) {
    if (error instanceof RequestError) throw new StartError(`${file}: ${error.message}`);
    throw ofTheFile(file, error);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @throws StartError */
export function requireAbsent(file: string): void {
  if (existsSync(file)) throw new StartError(`${file} is there already, and is not overwritten`);
}

/** The file has its name only when it is whole and checked. @throws StartError, and what `take` throws */
export async function saveSnapshot(file: string, take: () => Promise<Streamed | Readable>): Promise<Inspected> {
  requireAbsent(file);
  const stream = await take();
  const source = stream instanceof Readable ? stream : Readable.fromWeb(stream as never);
  const part = `${file}.part`;
  try {
    await pipeline(source, createWriteStream(part, { flags: 'wx', mode: 0o600, flush: true }));
    const inspected = await inspectSnapshot(part);
    requireAbsent(file);
    renameSync(part, file);
    syncFolder(dirname(file));
    return inspected;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') rmSync(part, { force: true });
    if (error instanceof StartError) throw error;
    throw ofTheFile(part, error);
  }
}

/** Makes the names in it durable. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** @throws StartError */
export async function streamOf(file: string): Promise<Streamed> {
  try {
    return (await openAsBlob(file)).stream() as unknown as Streamed;
  } catch (error) {
    throw ofTheFile(file, error);
  }
}

function ofTheFile(file: string, error: unknown): StartError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new StartError(`${file} cannot be used: ${code ?? message}`);
}
