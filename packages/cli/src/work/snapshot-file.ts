import { createReadStream, createWriteStream, existsSync, linkSync, openAsBlob, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Streamed } from '@transitd/client';
import { RequestError } from '@transitd/http';
import { StartError } from '@transitd/process';
import { readArchive, type SnapshotMeta } from '@transitd/snapshot-archive';
import { StorageDamaged, StorageFailed, syncDirectory } from '@transitd/storage-fsm';

/** What a snapshot says of itself, and how much it holds. */
export type Inspected = SnapshotMeta & { readonly stateBytes: number };

/** All checksums of the file hold; whose key sealed it, only a server can say. @throws StartError */
export async function inspectSnapshot(file: string): Promise<Inspected> {
  try {
    const { meta, state } = await readArchive(createReadStream(file));
    return { ...meta, stateBytes: state.bytes };
  } catch (error) {
    if (error instanceof RequestError) throw new StartError(`${file}: ${error.message}`);
    throw ofTheFile(file, error);
  }
}

const taken = (file: string): StartError => new StartError(`${file} is there already, and is not overwritten`);

/** @throws StartError */
export function requireAbsent(file: string): void {
  if (existsSync(file)) throw taken(file);
}

/** The file has its name only when it is whole and checked. @throws StartError; what `take` and its stream throw of another disk */
export async function saveSnapshot(file: string, take: () => Promise<Streamed | Readable>): Promise<Inspected> {
  requireAbsent(file);
  const stream = await take();
  const source = stream instanceof Readable ? stream : Readable.fromWeb(stream as never);
  const part = `${file}.part`;
  try {
    await pipeline(source, createWriteStream(part, { flags: 'wx', mode: 0o600, flush: true }));
    const inspected = await inspectSnapshot(part);
    giveName(part, file);
    await syncDirectory(dirname(file));
    return inspected;
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && syscall === 'open')
      throw new StartError(`${part} is left of an earlier attempt, or being written: delete it if it is not`);
    rmSync(part, { force: true });
    throw error instanceof StartError || error instanceof StorageDamaged || error instanceof StorageFailed
      ? error
      : ofTheFile(part, error);
  }
}

/** Unlike a rename a link takes the place of nothing; a file system that has none is looked at before. @throws StartError */
function giveName(part: string, file: string): void {
  try {
    linkSync(part, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw taken(file);
    requireAbsent(file);
    renameSync(part, file);
    return;
  }
  try {
    rmSync(part);
  } catch {
    // The snapshot has its name; the other one is of the same file and takes no room.
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
