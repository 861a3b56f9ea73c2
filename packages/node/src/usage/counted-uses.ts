import { noUses, type UseTally, useKinds } from '@transitd/transit-engine';
import type { KeyVersionUse } from './usage-wire.ts';

/** Counts the uses of keys in one thread. */
export interface UseCounter {
  /** Adds the uses of an answered request. @param mount - the id of the mount @param name - of the key */
  count(mount: string, name: string, tally: UseTally): void;
}

/** Most key versions that a thread counts between two reports. The uses of further ones are lost, and that is reported. */
const countedVersionsMax = 100_000;

/** Uses of key versions since they were last taken. Memory is bounded by {@link countedVersionsMax}. */
export class CountedUses {
  /** By the key's id, then by the version. */
  readonly #keys = new Map<string, Map<number, Writable<KeyVersionUse>>>();
  readonly #versionsMax: number;
  #size = 0;
  #hasLost = false;

  constructor(versionsMax = countedVersionsMax) {
    this.#versionsMax = versionsMax;
  }

  get size(): number {
    return this.#size;
  }

  /** Some uses could not be counted since the last {@link takeLost}. */
  get hasLost(): boolean {
    return this.#hasLost;
  }

  /** @param timeMs - of the uses, in Unix milliseconds; fractions are dropped, because records have whole numbers */
  add(mount: string, name: string, { keyId, counts }: Pick<UseTally, 'keyId' | 'counts'>, timeMs: number): void {
    const nowMs = Math.floor(timeMs);
    for (const [version, used] of counts) {
      const use =
        this.#keys.get(keyId)?.get(version) ??
        this.#begin({ mount, name, id: keyId, version, ...noUses(), firstMs: nowMs, lastMs: nowMs });
      if (use === undefined) continue;
      for (const kind of useKinds) use[kind] += used[kind];
      use.lastMs = Math.max(use.lastMs, nowMs);
    }
  }

  /** Adds the uses that another thread has counted. */
  merge(uses: readonly KeyVersionUse[], { hasLost }: { readonly hasLost: boolean }): void {
    this.#hasLost ||= hasLost;
    for (const added of uses) {
      const use = this.#keys.get(added.id)?.get(added.version) ?? this.#begin({ ...added, ...noUses() });
      if (use === undefined) continue;
      for (const kind of useKinds) use[kind] += added[kind];
      use.firstMs = Math.min(use.firstMs, added.firstMs);
      use.lastMs = Math.max(use.lastMs, added.lastMs);
    }
  }

  /** Returns copies of the uses of one key. */
  of(id: string): readonly KeyVersionUse[] {
    return Array.from(this.#keys.get(id)?.values() ?? [], (use) => ({ ...use }));
  }

  /** Removes uses and returns them. @param max - most key versions */
  take(max = Number.POSITIVE_INFINITY): readonly KeyVersionUse[] {
    const taken: KeyVersionUse[] = [];
    for (const [id, versions] of this.#keys) {
      for (const [version, use] of versions) {
        if (taken.length >= max) return taken;
        taken.push(use);
        versions.delete(version);
        this.#size -= 1;
      }
      this.#keys.delete(id);
    }
    return taken;
  }

  /** Returns whether some uses could not be counted, and forgets it. */
  takeLost(): boolean {
    const had = this.#hasLost;
    this.#hasLost = false;
    return had;
  }

  /** Counts another key version, and returns its use; undefined if there is no room for it. */
  #begin(fresh: KeyVersionUse): Writable<KeyVersionUse> | undefined {
    if (this.#size >= this.#versionsMax) {
      this.#hasLost = true;
      return undefined;
    }
    let versions = this.#keys.get(fresh.id);
    if (versions === undefined) {
      versions = new Map();
      this.#keys.set(fresh.id, versions);
    }
    versions.set(fresh.version, fresh);
    this.#size += 1;
    return fresh;
  }
}

type Writable<T> = { -readonly [Member in keyof T]: T[Member] };
