import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { Readable, Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { Refusal } from '@transitd/storage-fsm';
import { extract, type Header, pack } from 'tar-stream';
import { z } from 'zod';

/** The content of `meta.json`. */
export interface SnapshotMeta {
  readonly format: 1;
  /** Version of the server that made the snapshot. */
  readonly version: string;
  readonly clusterId: string;
  readonly index: number;
  readonly term: number;
  readonly createdUtc: string;
  /** The feature level of the state. */
  readonly featureLevel: number;
}

/** Fields that only a later release knows are left out. */
const meta = z.object({
  format: z.literal(1),
  version: z.string().max(64),
  clusterId: z.string().max(64),
  index: z.int().min(0),
  term: z.int().min(0),
  createdUtc: z.iso.datetime(),
  featureLevel: z.int().min(1),
});

/** The state of a cluster. All of it is ciphertext except the paths of the records. */
export interface SnapshotParts {
  readonly meta: SnapshotMeta;
  /** Size and checksum of `state.bin`. */
  readonly state: { readonly bytes: number; readonly sha256: string };
}

export interface SealedParts extends SnapshotParts {
  /** The checksums of meta.json and state.bin, as `sha256sum -c` reads them. */
  readonly sums: Buffer;
  /** Proves that the checksums were written under the root key. */
  readonly proof: Buffer;
}

/** Replaces the proof in a snapshot that was made without the root key. No real proof equals this value. */
export const noProof: Buffer = Buffer.from('recovered from the disk of a stopped node: there is no proof\n');

type Entry = Readable & { readonly header: Header };

/** `not_restorable`: the file is not a snapshot or is damaged, or this cluster cannot use it. */
export type SnapshotErrorCode = 'not_restorable' | 'too_large';

/** A refused snapshot. The message reaches the caller. */
export class SnapshotError extends Refusal<SnapshotErrorCode> {}

/** Limit of each part other than `state.bin`. */
const smallBytesMax = 64 * 1024;
const names = ['meta.json', 'state.bin', 'SHA256SUMS', 'SHA256SUMS.sealed'] as const;
type Name = (typeof names)[number];

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const metaBytes = (content: SnapshotMeta): Buffer => Buffer.from(`${JSON.stringify(content, undefined, 2)}\n`);

/** Returns the content of `SHA256SUMS`. */
export const sumsOf = ({ meta, state }: SnapshotParts): Buffer => sumsText(sha256(metaBytes(meta)), state.sha256);
const sumsText = (metaSum: string, stateSum: string): Buffer => Buffer.from(`${metaSum}  meta.json\n${stateSum}  state.bin\n`);

/**
 * Returns the archive, a tar compressed with gzip, as a stream. The stream fails when `content` fails or does not have the size in `state`.
 * @param content - of `state.bin`
 */
export function archiveOf({ meta, state, sums, proof }: SealedParts, content: AsyncIterable<Uint8Array>): Readable {
  const archive = pack();
  const gzip = createGzip({ level: 1 }); // ciphertext does not compress
  const write = async (): Promise<void> => {
    archive.entry({ name: 'meta.json', mode: 0o600 }, metaBytes(meta));
    await pipeline(content, archive.entry({ name: 'state.bin', size: state.bytes, mode: 0o600 }));
    archive.entry({ name: 'SHA256SUMS', mode: 0o600 }, sums);
    archive.entry({ name: 'SHA256SUMS.sealed', mode: 0o600 }, proof);
    archive.finalize();
  };
  write().catch((error: Error) => archive.destroy(error));
  pipeline(Readable.from(archive), gzip).catch(() => undefined); // the reader of gzip gets the error
  return gzip;
}

interface ReadOptions {
  readonly statePath?: string;
  readonly bytesMax?: number;
  /** Called for each chunk of the state; an error that it throws ends the reading. */
  readonly watch?: () => void;
}

/**
 * Reads an archive and checks its checksums. `state.bin` is written to a new file at `statePath`, if given.
 * @throws SnapshotError; errors of `source` and `watch`
 */
export async function readArchive(
  source: AsyncIterable<Uint8Array>,
  { statePath, bytesMax = Number.POSITIVE_INFINITY, watch = () => undefined }: ReadOptions = {},
): Promise<SealedParts> {
  const small = new Map<Name, Buffer>();
  let state: SnapshotParts['state'] | undefined;
  const tar = extract();
  let sourceFailure: unknown;
  const unpacked = pipeline(
    reportingErrors(source, (error) => (sourceFailure = error)),
    createGunzip(),
    tar,
  );
  unpacked.catch(() => undefined); // awaited below
  try {
    for await (const source of tar) {
      const entry = source as unknown as Entry;
      const name = names.find((one) => one === entry.header.name);
      const isKnown = name !== undefined && entry.header.type === 'file' && !small.has(name);
      if (!isKnown || (name === 'state.bin' && state !== undefined))
        throw unusableSnapshot('it contains files that are not part of a snapshot');
      if (name === 'state.bin') state = await stateIn(entry, { statePath, bytesMax, watch });
      else small.set(name, await smallIn(entry));
    }
    await unpacked;
  } catch (error) {
    if (sourceFailure !== undefined) throw sourceFailure;
    if (isOfTheArchive(error)) throw unusableSnapshot('it is not a tar compressed with gzip, or it is cut short');
    throw error;
  }
  return checked(small, state);
}

/** Reports an error of the source before it reaches the pipeline, where it would look like an error of the archive. */
async function* reportingErrors(source: AsyncIterable<Uint8Array>, failed: (error: unknown) => void): AsyncGenerator<Uint8Array> {
  try {
    yield* source;
  } catch (error) {
    failed(error);
    throw error;
  }
}

async function stateIn(
  entry: Entry,
  { statePath: path, bytesMax, watch }: Omit<Required<ReadOptions>, 'statePath'> & { readonly statePath: string | undefined },
): Promise<SnapshotParts['state']> {
  const sum = createHash('sha256');
  let bytes = 0;
  const measured = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      sum.update(chunk);
      try {
        if (bytes > bytesMax) throw new SnapshotError('too_large', 'the snapshot is too large');
        watch();
        done(null, chunk);
      } catch (error) {
        done(error as Error);
      }
    },
  });
  const kept =
    path === undefined
      ? new Writable({ write: (_chunk, _encoding, done) => done() })
      : createWriteStream(path, { flags: 'wx', mode: 0o600 });
  await pipeline(entry, measured, kept);
  return { bytes, sha256: sum.digest('hex') };
}

async function smallIn(entry: Entry): Promise<Buffer> {
  if ((entry.header.size ?? 0) > smallBytesMax) throw unusableSnapshot('a file other than state.bin is too large');
  const chunks: Buffer[] = [];
  for await (const chunk of entry) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function checked(small: ReadonlyMap<Name, Buffer>, state: SnapshotParts['state'] | undefined): SealedParts {
  const [metaFile, sums, proof] = [small.get('meta.json'), small.get('SHA256SUMS'), small.get('SHA256SUMS.sealed')];
  if (metaFile === undefined || sums === undefined || proof === undefined || state === undefined)
    throw unusableSnapshot('some of its files are missing');
  if (!sums.equals(sumsText(sha256(metaFile), state.sha256))) throw unusableSnapshot('its checksums do not match');
  const read = meta.safeParse(parseJson(metaFile));
  if (!read.success) throw unusableSnapshot('its meta.json has an unknown format');
  return { meta: read.data, state, sums, proof };
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Errors of the disk have the name of a system call; all others come from the content. */
const isOfTheArchive = (error: unknown): boolean =>
  error instanceof Error && !(error instanceof Refusal) && (error as NodeJS.ErrnoException).syscall === undefined;

/** The refusal of a file that is not a usable snapshot. */
export const unusableSnapshot = (reason: string): SnapshotError =>
  new SnapshotError('not_restorable', `this file is not a snapshot that can be restored: ${reason}`);
