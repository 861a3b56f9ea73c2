import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { Readable, Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { RequestError } from '@transitd/http';
import { StoreError } from '@transitd/storage-fsm';
import { extract, type Header, pack } from 'tar-stream';
import { z } from 'zod';

/** What a snapshot says of itself. */
export interface SnapshotMeta {
  readonly format: 1;
  /** Of the server that made it. */
  readonly version: string;
  readonly clusterId: string;
  readonly index: number;
  readonly term: number;
  readonly createdUtc: string;
}

const meta = z.strictObject({
  format: z.literal(1),
  version: z.string().max(64),
  clusterId: z.string().max(64),
  index: z.int().min(0),
  term: z.int().min(0),
  createdUtc: z.iso.datetime(),
});

/** The state of a cluster in one file, as an operator keeps it. Everything in it is ciphertext, but for the paths of the records. */
export interface SnapshotParts {
  readonly meta: SnapshotMeta;
  /** What `state.bin` comes to. */
  readonly state: { readonly bytes: number; readonly sha256: string };
}

export interface SealedParts extends SnapshotParts {
  /** The checksums of meta.json and state.bin, as `sha256sum -c` reads them. */
  readonly sums: Buffer;
  /** Shows that they were written under the root key. */
  readonly proof: Buffer;
}

/** Stands in the place of a proof where nobody had the root key; no root key makes a proof like it. */
export const noProof: Buffer = Buffer.from('recovered from the disk of a stopped node: there is no proof\n');

type Entry = Readable & { readonly header: Header };

/** Of every part but `state.bin`. */
const smallBytesMax = 64 * 1024;
const names = ['meta.json', 'state.bin', 'SHA256SUMS', 'SHA256SUMS.sealed'] as const;
type Name = (typeof names)[number];

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const metaBytes = (parts: SnapshotMeta): Buffer => Buffer.from(`${JSON.stringify(parts, undefined, 2)}\n`);

/** The text of SHA256SUMS. */
export const sumsOf = ({ meta, state }: SnapshotParts): Buffer => sumsText(sha256(metaBytes(meta)), state.sha256);
const sumsText = (metaSum: string, stateSum: string): Buffer => Buffer.from(`${metaSum}  meta.json\n${stateSum}  state.bin\n`);

/**
 * The archive: a tar in gzip. The stream breaks when the content of `state.bin` does, or is not of the size that it comes to.
 * @param content - of `state.bin`
 */
export function archiveOf({ meta, state, sums, proof }: SealedParts, content: AsyncIterable<Uint8Array>): Readable {
  const archive = pack();
  const gzip = createGzip({ level: 1 }); // ciphertext does not get smaller
  const write = async (): Promise<void> => {
    archive.entry({ name: 'meta.json', mode: 0o600 }, metaBytes(meta));
    await pipeline(content, archive.entry({ name: 'state.bin', size: state.bytes, mode: 0o600 }));
    archive.entry({ name: 'SHA256SUMS', mode: 0o600 }, sums);
    archive.entry({ name: 'SHA256SUMS.sealed', mode: 0o600 }, proof);
    archive.finalize();
  };
  write().catch((error: Error) => archive.destroy(error));
  pipeline(Readable.from(archive), gzip).catch(() => undefined); // the failure breaks what is read
  return gzip;
}

interface ReadOptions {
  readonly statePath?: string;
  readonly bytesMax?: number;
  /** Called as bytes of the state come; what it throws ends the reading. */
  readonly watch?: () => void;
}

/**
 * Takes an archive apart, with its `state.bin` in the file at `statePath`, or nowhere; all its checksums hold.
 * @throws RequestError `invalid_request` when it is no snapshot, or damaged; what `source` and `watch` throw
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
    told(source, (error) => (sourceFailure = error)),
    createGunzip(),
    tar,
  );
  unpacked.catch(() => undefined); // told below
  try {
    for await (const source of tar) {
      const entry = source as unknown as Entry;
      const name = names.find((one) => one === entry.header.name);
      const isKnown = name !== undefined && entry.header.type === 'file' && !small.has(name);
      if (!isKnown || (name === 'state.bin' && state !== undefined)) throw garbage('it has other parts than a snapshot');
      if (name === 'state.bin') state = await stateIn(entry, { statePath, bytesMax, watch });
      else small.set(name, await smallIn(entry));
    }
    await unpacked;
  } catch (error) {
    if (sourceFailure !== undefined) throw sourceFailure;
    if (isOfTheArchive(error)) throw garbage('it is no gzip of a tar, or is cut short');
    throw error;
  }
  return checked(small, state);
}

/** A failure of the source is none of the archive's. */
async function* told(source: AsyncIterable<Uint8Array>, failed: (error: unknown) => void): AsyncGenerator<Uint8Array> {
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
        if (bytes > bytesMax) throw new RequestError('body_too_large', 'the snapshot is too large');
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
  if ((entry.header.size ?? 0) > smallBytesMax) throw garbage('one of its parts is too large');
  const chunks: Buffer[] = [];
  for await (const chunk of entry) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function checked(small: ReadonlyMap<Name, Buffer>, state: SnapshotParts['state'] | undefined): SealedParts {
  const [told, sums, proof] = [small.get('meta.json'), small.get('SHA256SUMS'), small.get('SHA256SUMS.sealed')];
  if (told === undefined || sums === undefined || proof === undefined || state === undefined)
    throw garbage('parts of it are missing');
  if (!sums.equals(sumsText(sha256(told), state.sha256))) throw garbage('its checksums do not hold');
  const read = meta.safeParse(jsonIn(told));
  if (!read.success) throw garbage('its meta.json is of an unknown format');
  return { meta: read.data, state, sums, proof };
}

function jsonIn(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The disk's failures name the call; all others are of what was sent. */
const isOfTheArchive = (error: unknown): boolean =>
  error instanceof Error &&
  !(error instanceof RequestError || error instanceof StoreError) &&
  (error as NodeJS.ErrnoException).syscall === undefined;

export const garbage = (reason: string): RequestError =>
  new RequestError('invalid_request', `this is no snapshot that can be restored: ${reason}`);
