import type { Keyring } from './keyring.ts';

/**
 * The loaded keyring as other threads of the process see it: a copy in shared memory, made when a thread first asks for it. It is wiped
 * together with the keyring, and replaced when another keyring is loaded.
 */
export class SharedKeyring {
  readonly #listeners = new Set<() => void>();
  #keyring: Keyring | undefined;
  #copy: SharedArrayBuffer | undefined;

  /** The memory for {@link openReadingView}; undefined while the barrier is sealed. */
  get memory(): SharedArrayBuffer | undefined {
    if (this.#keyring !== undefined) this.#copy ??= copyOf(this.#keyring);
    return this.#copy;
  }

  /** Calls `listener` when another keyring was loaded. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Called when a keyring was loaded. */
  install(keyring: Keyring): void {
    this.wipe();
    this.#keyring = keyring;
    for (const listener of this.#listeners) listener();
  }

  wipe(): void {
    if (this.#copy !== undefined) Buffer.from(this.#copy).fill(0);
    this.#copy = undefined;
    this.#keyring = undefined;
  }
}

/** Copies a keyring into shared memory. The format byte is written last, so that no thread opens a part of it. */
function copyOf({ encoded }: Keyring): SharedArrayBuffer {
  const shared = new SharedArrayBuffer(encoded.length);
  const copy = Buffer.from(shared);
  copy.set(encoded.subarray(1), 1);
  copy.set(encoded.subarray(0, 1));
  return shared;
}
