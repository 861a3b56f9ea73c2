import { outlasting } from '@transitd/raft-core';
import { type EpochName, type ReplicationState, sameEpoch } from '@transitd/storage-fsm';

/**
 * Settings of the fence. With a fence, a primary accepts writes only while it is in contact with each of its secondaries, and a promotion
 * waits until the primary has certainly noticed that the contact is lost. Each side measures with its own monotonic clock; the clocks are
 * never compared. So in a set of two clusters, never both accept writes. In a larger set, the fence does not prevent that two secondaries
 * are promoted: they do not know of each other.
 */
export interface FenceSettings {
  /** A primary without contact to one of its secondaries for this long refuses writes. */
  readonly afterMs: number;
}

/** Milliseconds since an arbitrary moment. It never goes back. */
export interface MonotonicClock {
  nowMs(): number;
}

/** The shortest fence: a heartbeat may wait for several seconds behind data on a slow link. */
export const fenceMsMin = 5_000;
/** The longest fence: the request for a promotion lasts a fifth longer. */
export const fenceMsMax = 60_000;

/** Returns the fence of a cluster's set; undefined if it is off. */
export const fenceOf = ({ fenceMs }: Pick<ReplicationState, 'fenceMs'>): FenceSettings | undefined =>
  fenceMs === undefined ? undefined : { afterMs: fenceMs };

/**
 * When each secondary was last in contact with the active node of the primary, in one epoch. A new active node starts without contacts. An
 * answer from an earlier epoch does not count, because the secondary may have been promoted since.
 */
export class Contacts {
  readonly #epoch: EpochName;
  readonly #sentMs = new Map<string, number>();

  constructor(epoch: EpochName) {
    this.#epoch = epoch;
  }

  /**
   * Records a heartbeat answer of a secondary.
   * @param sentMs - when that heartbeat was sent; the secondary received it later
   * @param epoch - the epoch that the secondary follows
   */
  answered(secondary: string, sentMs: number, epoch: EpochName): void {
    if (!sameEpoch(epoch, this.#epoch)) return;
    this.#sentMs.set(secondary, Math.max(sentMs, this.#sentMs.get(secondary) ?? Number.NEGATIVE_INFINITY));
  }

  /** Returns the last proven contact of the secondary that has been silent longest; undefined if any secondary never answered. */
  oldest(secondaries: readonly string[]): number | undefined {
    let oldest = Number.POSITIVE_INFINITY;
    for (const secondary of secondaries) {
      const sentMs = this.#sentMs.get(secondary);
      if (sentMs === undefined) return undefined;
      oldest = Math.min(oldest, sentMs);
    }
    return oldest;
  }

  /** Returns the secondary that has been silent longest, and since when; `sinceMs` is undefined if it never answered. */
  mostSilent(secondaries: readonly string[]): { readonly secondary: string; readonly sinceMs: number | undefined } | undefined {
    const since = (secondary: string): number => this.#sentMs.get(secondary) ?? Number.NEGATIVE_INFINITY;
    const [first] = secondaries.toSorted((a, b) => since(a) - since(b));
    return first === undefined ? undefined : { secondary: first, sinceMs: this.#sentMs.get(first) };
  }
}

/**
 * Returns whether the primary may accept a write, or acknowledge one. The primary asks at both times, because a secondary may be promoted
 * between them.
 * @param fence - undefined if the fence is off
 */
export function mayAccept(
  fence: FenceSettings | undefined,
  {
    contacts,
    secondaries,
    nowMs,
  }: { readonly contacts: Contacts; readonly secondaries: readonly string[]; readonly nowMs: number },
): boolean {
  if (fence === undefined || secondaries.length === 0) return true;
  const oldest = contacts.oldest(secondaries);
  return oldest !== undefined && nowMs < oldest + fence.afterMs;
}

/**
 * Returns how long a promotion must still wait for the fence, in whole milliseconds.
 * @param silentMs - time since this cluster last answered a heartbeat, or since its active node became active if that was later. The
 * previous active node answered only under its leader lease, so its last answer was earlier
 */
export function fenceWaitMs(fence: FenceSettings | undefined, silentMs: number): number {
  if (fence === undefined) return 0;
  return Math.max(0, Math.ceil(outlasting(fence.afterMs) - silentMs));
}
