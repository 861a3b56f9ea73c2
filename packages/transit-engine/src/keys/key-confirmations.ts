import type { RecordClock } from '@transitd/process';
import { pagesBelow, type Store, StoreError } from '@transitd/storage-fsm';
import { TransitError } from '../values/errors.ts';
import { commitAndWipe } from '../values/secrets.ts';
import type { ChangeQueue } from './change-queue.ts';
import { confirmKey } from './key.ts';
import type { KeyCache, LoadedKey } from './key-cache.ts';
import type { Paths } from './paths.ts';
import { visibleVersions } from './stored-versions.ts';

/** `degraded`: the secondaries do not have the material, but the operator prefers to use it all the same. */
export type Confirmation = 'confirmed' | 'degraded' | 'unconfirmed';

/** The secondary clusters, which must have key material before it is used. */
export interface SecondaryConfirmation {
  /**
   * Returns whether material that is made now must be confirmed.
   * @throws TransitError `unconfirmed` if no secondary would confirm it, so nothing may be made
   */
  required(): Promise<boolean>;
  /**
   * Returns whether the secondaries have the log entry with this service index.
   * @param wait - waits for them, as long as the operator has set
   */
  of(index: number, wait: boolean): Promise<Confirmation>;
}

/** A cluster whose key material can be used at once. */
export const noConfirmation: SecondaryConfirmation = {
  required: () => Promise.resolve(false),
  of: () => Promise.resolve('confirmed'),
};

export interface KeyConfirmationParts {
  readonly store: Store;
  readonly paths: Paths;
  readonly keys: KeyCache;
  readonly changes: ChangeQueue;
  readonly secondaries: SecondaryConfirmation;
  readonly clock: RecordClock;
}

/**
 * Keeps new versions of keys from use until the secondary clusters have them. A version is stored with the mark that it is unconfirmed; a
 * second entry removes the mark. Every node uses a key as its record says, so no other node needs to know about confirmations.
 */
export class KeyConfirmations {
  readonly #parts: KeyConfirmationParts;

  constructor(parts: KeyConfirmationParts) {
    this.#parts = parts;
  }

  /**
   * Runs a change that makes key material, and waits until the material may be used.
   * @param make - stores the material, held back if the argument is true
   * @param existing - for a request that makes nothing if the key exists: its result then, which does not depend on the secondaries
   * @returns the result of `make` or `existing`, and warnings for the caller
   * @throws TransitError `unconfirmed`, and then nothing was done; StoreError `outcome_unknown` once `make` has stored the material
   */
  async making<T>(
    name: string,
    make: (isHeld: boolean) => Promise<T>,
    existing?: (key: LoadedKey) => Promise<T>,
  ): Promise<{ readonly made: T; readonly isHeld: boolean; readonly warnings: readonly string[] }> {
    const { keys, secondaries } = this.#parts;
    const present = await keys.key(name);
    const isMarked = present?.record.confirmedVersion !== undefined;
    if (present !== undefined && !isMarked && existing !== undefined)
      return { made: await existing(present), isHeld: false, warnings: [] };
    if (isMarked && (await this.#confirmed(name)) === 'unconfirmed')
      throw new TransitError('unconfirmed', stillUnconfirmed(name));
    const isHeld = await secondaries.required();
    const made = await make(isHeld);
    if (!isHeld) return { made, isHeld, warnings: [] };
    const confirmation = await afterMaking(name, () => this.#confirmed(name));
    if (confirmation === 'unconfirmed') throw new StoreError('outcome_unknown', confirmedTooLate(name));
    return { made, isHeld, warnings: confirmation === 'degraded' ? [usedUnconfirmed(name)] : [] };
  }

  /**
   * Lets material be used that was confirmed after its request had ended.
   * @returns whether none is left
   */
  async useConfirmed(): Promise<boolean> {
    const { store, paths, secondaries } = this.#parts;
    let isDone = true;
    // Secondaries that lack an entry lack every later one too. Asking for each of many notes would hold up the event loop.
    let lacking = Number.POSITIVE_INFINITY;
    for await (const records of pagesBelow(store, { prefix: paths.unconfirmed }))
      for (const { path, revision } of records) {
        try {
          if (revision < lacking && (await secondaries.of(revision, false)) === 'unconfirmed') lacking = revision;
          if (revision >= lacking) isDone = false;
          else await this.#use(path.slice(paths.unconfirmed.length), revision);
        } catch (error) {
          if (error instanceof StoreError) throw error;
          isDone = false; // one damaged key does not stop the others
        }
      }
    return isDone;
  }

  /** Waits until all versions of a key may be used. */
  async #confirmed(name: string): Promise<Confirmation> {
    const { store, paths, keys, secondaries } = this.#parts;
    let result: Confirmation = 'confirmed';
    for (;;) {
      const key = await keys.key(name);
      if (key?.record.confirmedVersion === undefined) return result;
      const note = await store.get(paths.unconfirmed + name);
      if (note === undefined) continue; // confirmed in the meantime
      const confirmation = await secondaries.of(note.revision, true);
      if (confirmation === 'unconfirmed') return confirmation;
      if (confirmation === 'degraded') result = confirmation;
      await this.#use(name, note.revision);
    }
  }

  /** Removes the mark of a key, unless the key has got newer material since the entry with this index. */
  #use(name: string, index: number): Promise<true> {
    const { store, paths, keys, changes, clock } = this.#parts;
    const path = paths.unconfirmed + name;
    return changes.run(name, async () => {
      if ((await store.get(path))?.revision !== index) return true;
      const key = await keys.key(name);
      if (key?.record.confirmedVersion === undefined) {
        await store.commit({ conditions: [{ path, revision: index }], writes: [{ path, value: null }] });
        return true;
      }
      const { record, transaction } = confirmKey(paths, key, index, clock.utcMs());
      const versions = await visibleVersions(store, paths, record);
      const used = await keys.keepChanged({ name, record }, versions, () => commitAndWipe(store, transaction));
      return used && true;
    });
  }
}

/** Runs what follows the storing of material. Its refusals would say that nothing was done, and the request would be sent again. */
export async function afterMaking<T>(name: string, follow: () => Promise<T>): Promise<T> {
  try {
    return await follow();
  } catch (error) {
    if (!(error instanceof StoreError || error instanceof TransitError)) throw error;
    throw new StoreError('outcome_unknown', stored(name, error.message), { cause: error });
  }
}

const stored = (name: string, reason: string): string =>
  `the new material of key ${name} is stored, but whether it may be used already is unknown: ${reason}`;
const stillUnconfirmed = (name: string): string =>
  `the secondary clusters have not confirmed the newest material of key ${name} yet: nothing was done, try again later`;
const confirmedTooLate = (name: string): string =>
  `the secondary clusters did not confirm the new material of key ${name} in time; it is stored, and it will be used once they confirm it`;
const usedUnconfirmed = (name: string): string =>
  `the new material of key ${name} is used, although the secondary clusters have not confirmed it: a promotion may lose it`;
