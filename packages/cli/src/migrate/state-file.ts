import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { requireOwnerOnly, StartError } from '@transitd/process';
import { syncDirectory } from '@transitd/storage-fsm';

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

/** The state of a move between two services, by `mount/key`. */
export interface MoveState {
  readonly format: 1;
  readonly source: string;
  readonly target: string;
  readonly keys: Readonly<Record<string, KeyState>>;
}

/**
 * The state file of a move. Every change is on disk before the next request, so an interrupted run can be continued.
 */
export class StateFile {
  readonly #path: string;
  #state: MoveState;

  private constructor(path: string, state: MoveState) {
    this.#path = path;
    this.#state = state;
  }

  /** Opens the file, or starts a new one. @throws StartError if it belongs to another move, is damaged, or others can read it */
  static open(path: string, { source, target }: { readonly source: string; readonly target: string }): StateFile {
    let text: string;
    try {
      requireOwnerOnly(path);
      text = readFileSync(path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new StateFile(path, { format: 1, source, target, keys: {} });
      if (error instanceof StartError) throw error;
      throw new StartError(`the state file ${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
    }
    const state = stateIn(text);
    if (state === undefined)
      throw new StartError(`${path} is not a state file of transitd migrate: name another file with --state`);
    if (state.source !== source || state.target !== target)
      throw new StartError(`${path} belongs to a move from ${state.source} to ${state.target}: name another file with --state`);
    return new StateFile(path, state);
  }

  key(mount: string, name: string): KeyState | undefined {
    return this.#state.keys[`${mount}/${name}`];
  }

  /** Records the state of a key, on disk. @throws StartError */
  async record(mount: string, name: string, key: KeyState): Promise<void> {
    this.#state = { ...this.#state, keys: { ...this.#state.keys, [`${mount}/${name}`]: key } };
    const temporary = `${this.#path}.${process.pid}`;
    try {
      const file = openSync(temporary, 'wx', 0o600);
      try {
        writeSync(file, `${JSON.stringify(this.#state, null, 1)}\n`);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(temporary, this.#path);
      await syncDirectory(dirname(this.#path));
    } catch (error) {
      rmSync(temporary, { force: true });
      throw new StartError(
        `the state file ${this.#path} cannot be written: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`,
      );
    }
  }
}

function stateIn(text: string): MoveState | undefined {
  try {
    const state = JSON.parse(text) as Partial<MoveState> | null;
    const isState = state?.format === 1 && typeof state.keys === 'object' && state.keys !== null;
    return isState ? ({ ...state, keys: { ...state.keys } } as MoveState) : undefined;
  } catch {
    return undefined;
  }
}
