import type { Disk, DiskFile } from '../../src/directory/disk.ts';
import { StorageInUse } from '../../src/errors.ts';

const pageBytes = 64; // smaller than real pages, so that even short batches tear
const enospc = () => Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });

export type DiskOperation = 'read' | 'write' | 'sync' | 'truncate' | 'create' | 'rename' | 'remove' | 'syncDirectory';
type Change = (content: Buffer) => Buffer;

class MemoryFile {
  content: Buffer = Buffer.alloc(0);
  durable: Buffer = Buffer.alloc(0);
  unsynced: Change[] = [];

  change(change: Change): void {
    this.content = change(this.content);
    this.unsynced.push(change);
  }

  sync(): void {
    this.durable = this.unsynced.reduce<Buffer>((content, change) => change(content), Buffer.from(this.durable));
    this.unsynced = [];
  }
}

/** Changes `content` in place unless it has to grow. */
const overlay =
  (position: number, bytes: Buffer): Change =>
  (content) => {
    const missing = position + bytes.length - content.length;
    const changed = missing > 0 ? Buffer.concat([content, Buffer.alloc(missing)]) : content;
    bytes.copy(changed, position);
    return changed;
  };

/**
 * A disk that loses unsynced writes. A crash keeps any subset of a file's unsynced pages, and of the unsynced name changes in a
 * directory the first few.
 */
export class MemoryDisk implements Disk {
  /** Called before each operation; may throw or delay it. */
  before: (operation: DiskOperation, path: string) => void | Promise<void> = () => undefined;
  /** Called after each sync of a file. */
  synced: (path: string) => void = () => undefined;
  capacityBytes = Number.POSITIVE_INFINITY;
  /**
   * Whether the kernel reports the pages of a failed sync as clean, as Linux does: they can still be read, but no later sync writes them.
   */
  cleansPages = false;
  #names = new Map<string, MemoryFile>();
  #durableNames = new Map<string, MemoryFile>();
  #unsyncedNames: { readonly directory: string; readonly change: (names: Map<string, MemoryFile>) => void }[] = [];
  #directories = new Set<string>();
  #locked = new Set<string>();

  /** Creates a disk with these files, all durable. */
  static of(files: ReadonlyMap<string, Buffer>): MemoryDisk {
    const disk = new MemoryDisk();
    for (const [path, content] of files) {
      const file = new MemoryFile();
      file.content = Buffer.from(content);
      file.durable = Buffer.from(content);
      disk.#names.set(path, file);
      disk.#durableNames.set(path, file);
      for (let up = parent(path); up !== ''; up = parent(up)) disk.#directories.add(up);
    }
    return disk;
  }

  files(): Map<string, Buffer> {
    return new Map([...this.#names].map(([path, file]) => [path, Buffer.from(file.content)]));
  }

  /** Returns the files as if every unsynced change were lost. */
  durableFiles(): ReadonlyMap<string, Buffer> {
    return new Map([...this.#durableNames].map(([path, file]) => [path, file.durable]));
  }

  /** The disk after the process was killed: every write is kept, synced or not. Operations that are in flight never complete. */
  killed(): MemoryDisk {
    const disk = new MemoryDisk();
    disk.#names = this.#names;
    disk.#durableNames = this.#durableNames;
    disk.#unsyncedNames = this.#unsyncedNames;
    disk.#directories = this.#directories;
    disk.capacityBytes = this.capacityBytes;
    return disk;
  }

  /** Returns whether a power failure could lose some of the file's content. */
  isUnsynced(path: string): boolean {
    const file = this.#names.get(path);
    return file !== undefined && (file.unsynced.length > 0 || !file.content.equals(file.durable));
  }

  /** The disk after a power failure. `chance` decides for each unsynced page whether it had reached the disk. */
  crash(chance: () => boolean): MemoryDisk {
    const names = new Map(this.#durableNames);
    const stopped = new Set<string>();
    for (const { directory, change } of this.#unsyncedNames) {
      if (stopped.has(directory) || !chance()) stopped.add(directory);
      else change(names);
    }
    const survived = [...names].map(([path, file]): [string, Buffer] => [
      path,
      file.unsynced.filter(chance).reduce<Buffer>((content, change) => change(content), Buffer.from(file.durable)),
    ]);
    const disk = MemoryDisk.of(new Map(survived));
    for (const directory of this.#directories) disk.#directories.add(directory);
    return disk;
  }

  async open(path: string): Promise<DiskFile | undefined> {
    const file = this.#names.get(path);
    return file && this.#handle(path, file);
  }

  async create(path: string): Promise<DiskFile> {
    await this.before('create', path);
    const file = new MemoryFile();
    this.#rename(parent(path), (names) => names.set(path, file));
    return this.#handle(path, file);
  }

  async rename({ from, to }: { from: string; to: string }): Promise<void> {
    await this.before('rename', to);
    const file = this.#names.get(from);
    this.#rename(parent(to), (names) => {
      names.delete(from);
      if (file !== undefined) names.set(to, file);
    });
  }

  async remove(path: string): Promise<void> {
    await this.before('remove', path);
    this.#rename(parent(path), (names) => names.delete(path));
  }

  async list(directory: string): Promise<readonly string[] | undefined> {
    if (!this.#directories.has(directory)) return undefined;
    const below = [...this.#names.keys(), ...this.#directories].filter((path) => parent(path) === directory);
    return below.map((path) => path.slice(directory.length + 1));
  }

  async makeDirectory(path: string): Promise<void> {
    for (let up = path; up !== ''; up = parent(up)) this.#directories.add(up);
  }

  async removeDirectory(path: string): Promise<void> {
    const within = (name: string) => name === path || name.startsWith(`${path}/`);
    for (const name of [...this.#names.keys()].filter(within)) await this.remove(name);
    for (const name of [...this.#directories].filter(within)) this.#directories.delete(name);
  }

  async syncDirectory(path: string): Promise<void> {
    await this.before('syncDirectory', path);
    for (const { directory, change } of this.#unsyncedNames) if (directory === path) change(this.#durableNames);
    this.#unsyncedNames = this.#unsyncedNames.filter(({ directory }) => directory !== path);
  }

  async lock(directory: string): Promise<() => Promise<void>> {
    if (this.#locked.has(directory)) throw new StorageInUse(`${directory} is locked`);
    this.#locked.add(directory);
    return async () => {
      this.#locked.delete(directory);
    };
  }

  #rename(directory: string, change: (names: Map<string, MemoryFile>) => void): void {
    change(this.#names);
    this.#unsyncedNames.push({ directory, change });
  }

  #handle(path: string, file: MemoryFile): DiskFile {
    let open = true;
    const stillOpen = () => {
      if (!open) throw new Error(`EBADF: ${path} is closed`);
    };
    return {
      size: async () => file.content.length,
      read: async ({ position, bytes }) => {
        await this.before('read', path);
        stillOpen();
        return Buffer.from(file.content.subarray(position, position + bytes));
      },
      write: async (position, bytes) => {
        await this.before('write', path);
        stillOpen();
        this.#write(file, position, Buffer.from(bytes));
      },
      truncate: async (size) => {
        await this.before('truncate', path);
        file.change((content) => Buffer.concat([content, Buffer.alloc(Math.max(0, size - content.length))]).subarray(0, size));
      },
      sync: async () => {
        try {
          await this.before('sync', path);
        } catch (error) {
          if (this.cleansPages) file.unsynced = [];
          throw error;
        }
        file.sync();
        this.synced(path);
      },
      close: async () => {
        open = false;
      },
    };
  }

  /** Writes page by page: pages that still fit on a full disk are written before the error. */
  #write(file: MemoryFile, position: number, bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      const end = Math.min(bytes.length, at + pageBytes - ((position + at) % pageBytes));
      const grows = Math.max(0, position + end - file.content.length);
      if (this.#usedBytes() + grows > this.capacityBytes) throw enospc();
      file.change(overlay(position + at, bytes.subarray(at, end)));
      at = end;
    }
  }

  #usedBytes(): number {
    if (this.capacityBytes === Number.POSITIVE_INFINITY) return 0;
    return [...this.#names.values()].reduce((sum, { content }) => sum + content.length, 0);
  }
}

const parent = (path: string): string => path.slice(0, path.lastIndexOf('/'));
