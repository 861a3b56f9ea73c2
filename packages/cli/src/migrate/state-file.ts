import { constants, readFileSync } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { requireOwnerOnly, StartError } from '@transitd/process';
import { lockDirectory, StorageInUse, syncDirectory } from '@transitd/storage-fsm';

/** The entry of one key in the state file. It contains no secret. */
export interface KeyState {
  /**
   * - `started`: before the first write at the target, so that a later run may continue
   * - `refused`: the target refused this write, so a key of this name there is another key
   * - `moved`: every version is at the target
   */
  readonly status: 'started' | 'refused' | 'moved';
  readonly method: 'backup' | 'import';
  /** Newest version that was moved. */
  readonly latestVersion: number;
  /** The protection of the key before this program changed it at the source. */
  readonly before: { readonly exportable: boolean; readonly allowPlaintextBackup: boolean };
}

/** The two services of a move. */
export interface MoveEnds {
  readonly source: string;
  readonly target: string;
}

/** The keys that earlier runs of a move recorded. */
export interface KnownKeys {
  key(mount: string, name: string): KeyState | undefined;
}

/** The state of a move that can be recorded. */
export interface MoveState extends KnownKeys {
  /** Records the state of a key, on disk. @throws StartError */
  record(mount: string, name: string, key: KeyState): Promise<void>;
}

const format = 1;

/** One line of the file after the first. */
interface Line {
  readonly mount: string;
  readonly name: string;
  readonly key: KeyState;
}

/**
 * The state file of a move: a line that names the two services, then a line for each change of a key; the last one counts. Every change is
 * on disk before the next request, so an interrupted run can be continued. A last line without its end was being written when the machine
 * stopped: nothing that depends on it was done, so it does not count.
 */
export class StateFile implements MoveState {
  readonly #path: string;
  readonly #header: string;
  readonly #unlock: () => Promise<void>;
  readonly #keys: Map<string, KeyState>;
  /** Bytes of the complete lines. */
  #bytes: number;
  #file: FileHandle | undefined;

  private constructor(path: string, { header, bytes, keys }: Content, unlock: () => Promise<void>) {
    this.#path = path;
    this.#header = header;
    this.#bytes = bytes;
    this.#keys = keys;
    this.#unlock = unlock;
  }

  /** Reads the file without changing it; a missing one is empty. @throws StartError if it belongs to another move, or cannot be used */
  static read(path: string, ends: MoveEnds): KnownKeys {
    const { keys } = contentOf(path, ends);
    return { key: (mount, name) => keys.get(nameOf(mount, name)) };
  }

  /**
   * Opens the file, or starts a new one. Close it, so that another run may open it.
   * @throws StartError, also while another run has it open
   */
  static async open(path: string, ends: MoveEnds): Promise<StateFile> {
    const unlock = await locked(path);
    try {
      return new StateFile(path, contentOf(path, ends), unlock);
    } catch (error) {
      await unlock();
      throw error;
    }
  }

  key(mount: string, name: string): KeyState | undefined {
    return this.#keys.get(nameOf(mount, name));
  }

  async record(mount: string, name: string, key: KeyState): Promise<void> {
    const line: Line = { mount, name, key };
    const bytes = Buffer.from(`${this.#bytes === 0 ? this.#header : ''}${JSON.stringify(line)}\n`);
    try {
      const isNew = this.#file === undefined;
      this.#file ??= await this.#openFile();
      await this.#file.appendFile(bytes);
      await this.#file.sync();
      if (isNew) await syncDirectory(dirname(this.#path));
    } catch (error) {
      throw unusable(this.#path, 'written', error);
    }
    this.#bytes += bytes.length;
    this.#keys.set(nameOf(mount, name), key);
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
    await this.#unlock();
  }

  /** Removes an incomplete last line, because the next line takes its place. */
  async #openFile(): Promise<FileHandle> {
    const file = await open(this.#path, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT, 0o600);
    await file.truncate(this.#bytes);
    return file;
  }
}

interface Content {
  /** The first line of a file of this move. */
  readonly header: string;
  readonly bytes: number;
  readonly keys: Map<string, KeyState>;
}

const nameOf = (mount: string, name: string): string => `${mount}/${name}`;

/** Locks a folder beside the file, as a node locks its data directory: the lock ends with the process, however it ends. */
async function locked(path: string): Promise<() => Promise<void>> {
  const folder = `${path}.lock`;
  try {
    await mkdir(folder, { mode: 0o700 }).catch(unlessPresent);
    return await lockDirectory(folder);
  } catch (error) {
    if (error instanceof StorageInUse)
      throw new StartError(
        `another transitd migrate is using ${path}: wait until it has ended, or name another file with --state`,
      );
    throw unusable(folder, 'locked', error);
  }
}

function unlessPresent(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

/** @throws StartError */
function contentOf(path: string, { source, target }: MoveEnds): Content {
  const header = `${JSON.stringify({ format, source, target })}\n`;
  const text = textOf(path);
  // A shorter text is what a crash left of the first write, and holds no key.
  if (header.startsWith(text)) return { header, bytes: text === header ? Buffer.byteLength(header) : 0, keys: new Map() };
  const complete = text.slice(0, text.lastIndexOf('\n') + 1);
  const [first = '', ...lines] = complete.split('\n').slice(0, -1);
  const ends = parsed<MoveEnds & { readonly format: number }>(first);
  const notOurs = new StartError(`${path} is not a state file of transitd migrate: name another file with --state`);
  if (ends?.format !== format) throw notOurs;
  if (ends.source !== source || ends.target !== target)
    throw new StartError(`${path} belongs to a move from ${ends.source} to ${ends.target}: name another file with --state`);
  const keys = new Map<string, KeyState>();
  for (const each of lines) {
    const line = parsed<Line>(each);
    if (line?.mount === undefined || line.name === undefined || line.key === undefined) throw notOurs;
    keys.set(nameOf(line.mount, line.name), line.key);
  }
  return { header, bytes: Buffer.byteLength(complete), keys };
}

/** Returns the text of the file; empty if the file does not exist. @throws StartError */
function textOf(path: string): string {
  try {
    requireOwnerOnly(path);
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw unusable(path, 'read', error);
  }
}

const unusable = (path: string, how: string, error: unknown): unknown =>
  error instanceof StartError
    ? error
    : new StartError(`the state file ${path} cannot be ${how}: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);

function parsed<T>(line: string): Partial<T> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Partial<T>) : undefined;
  } catch {
    return undefined;
  }
}
