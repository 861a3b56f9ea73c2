import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { MemoryLevel } from 'memory-level';
import type { DiskFile } from '../../src/directory/disk.ts';
import type { StateDatabase } from '../../src/state/state-level.ts';
import type { MemoryDisk } from '../directory/memory-disk.ts';

type Step =
  | { readonly type: 'put'; readonly key: string; readonly value: Buffer }
  | { readonly type: 'del'; readonly key: string };

const headBytes = 8;
/** The file grows by this much, so that most batches do not change its size. */
const growBytes = 8 * 1024;

/**
 * A database in memory that stores its batches in one file on a fake disk, `length u32 | crc u32 | JSON`, each synced. A crash keeps the
 * last batch completely or not at all, like LevelDB's write-ahead log, and may lose the name of an unsynced file or directory.
 */
export async function openRecords(disk: MemoryDisk, directory: string): Promise<StateDatabase> {
  await disk.makeDirectory(directory);
  const path = join(directory, 'batches');
  const found = await disk.open(path);
  const file = found ?? (await disk.create(path));
  if (found !== undefined && disk.isUnsynced(path)) {
    // LevelDB writes the content of its log into a table and syncs it before it is open.
    await file.sync();
    if (disk.isUnsynced(path)) await writeAgain(file);
    await disk.syncDirectory(directory);
  }
  const level = new MemoryLevel<string, Buffer>({ keyEncoding: 'utf8', valueEncoding: 'buffer' });
  await level.open();
  const batches = new Batches(file);
  for (const steps of await batches.readAll()) await level.batch(steps);
  const database = {
    location: directory,
    getSync: (key: Buffer, options?: object) => level.getSync(key, options ?? {}),
    iterator: (options: object) => level.iterator(options),
    snapshot: () => level.snapshot(),
    batch: () => {
      const steps: Step[] = [];
      return {
        put: (key: string, value: Buffer) => void steps.push({ type: 'put', key, value }),
        del: (key: string) => void steps.push({ type: 'del', key }),
        write: async () => {
          await batches.write(steps);
          await level.batch(steps);
        },
      };
    },
  };
  return {
    level: database as unknown as StateDatabase['level'],
    syncNames: () => disk.syncDirectory(directory),
    close: async () => {
      await level.close();
      await file.close();
    },
  };
}

/** Makes pages durable that a failed sync has left clean, so that another sync alone does not write them. */
async function writeAgain(file: DiskFile): Promise<void> {
  await file.write(0, await file.read({ position: 0, bytes: await file.size() }));
  await file.sync();
}

class Batches {
  readonly #file: DiskFile;
  #end = 0;
  #size = 0;
  /** Checksum of the last intact batch: bytes that an earlier file left after it do not count. */
  #crc = 0;

  constructor(file: DiskFile) {
    this.#file = file;
  }

  async readAll(): Promise<Step[][]> {
    this.#size = await this.#file.size();
    const bytes = await this.#file.read({ position: 0, bytes: this.#size });
    const batches: Step[][] = [];
    for (;;) {
      const length = this.#end + headBytes > bytes.length ? 0 : bytes.readUInt32BE(this.#end);
      const text = bytes.subarray(this.#end + headBytes, this.#end + headBytes + length);
      if (length === 0 || text.length < length) return batches;
      const crc = crc32(text, this.#crc);
      if (crc !== bytes.readUInt32BE(this.#end + 4)) return batches;
      batches.push(decode(text));
      this.#end += headBytes + length;
      this.#crc = crc;
    }
  }

  async write(steps: readonly Step[]): Promise<void> {
    const text = encode(steps);
    const crc = crc32(text, this.#crc);
    const bytes = Buffer.alloc(headBytes + text.length);
    bytes.writeUInt32BE(text.length);
    bytes.writeUInt32BE(crc, 4);
    text.copy(bytes, headBytes);
    const end = this.#end + bytes.length;
    if (end > this.#size) {
      this.#size = end + growBytes;
      await this.#file.truncate(this.#size);
    }
    await this.#file.write(this.#end, bytes);
    await this.#file.sync();
    this.#end = end;
    this.#crc = crc;
  }
}

const encode = (steps: readonly Step[]): Buffer =>
  Buffer.from(JSON.stringify(steps.map((step) => [step.key, step.type === 'put' ? step.value.toString('base64') : null])));

function decode(text: Buffer): Step[] {
  const steps: [key: string, value: string | null][] = JSON.parse(text.toString());
  return steps.map(([key, value]) =>
    value === null ? { type: 'del', key } : { type: 'put', key, value: Buffer.from(value, 'base64') },
  );
}
