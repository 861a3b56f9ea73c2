import { type EpochName, type ReplicationState, sameEpoch } from '@transitd/storage-fsm';

/**
 * The fence: with it, a primary accepts writes only while it is in contact with each of its secondaries, and a promotion waits until the
 * primary has certainly noticed that the contact is lost. Both sides measure with monotonic clocks, which are never compared. In a set of
 * two clusters, never two of them accept writes. Two secondaries that are both promoted do not know of each other, and the fence does not
 * exclude that.
 */
export interface FenceSettings {
  /** A primary without contact to one of its secondaries for this long refuses writes. */
  readonly afterMs: number;
  /** How much longer a promotion waits, in addition to the difference of the clocks' rates. */
  readonly marginMs: number;
}

/** The shortest fence: a heartbeat may wait for several seconds behind data on a slow link. */
export const fenceMsMin = 5_000;
/** The longest fence: the request for a promotion lasts as long. */
export const fenceMsMax = 60_000;
const marginMs = 1_000;

/** Returns the fence of a cluster's set; undefined if it is off. */
export const fenceOf = ({ fenceMs }: Pick<ReplicationState, 'fenceMs'>): FenceSettings | undefined =>
  fenceMs === undefined ? undefined : { afterMs: fenceMs, marginMs };

/** The rates of two clocks differ by at most this share: ten times the tolerance of common quartz oscillators. */
export const clockRateError = 1 / 1000;

/**
 * The contacts of a primary's active node with its secondaries, in one epoch. A new active node has had none, and an answer from before a
 * promotion does not count: the secondary may have been promoted since.
 */
export class Contacts {
  readonly #epoch: EpochName;
  readonly #sentMs = new Map<string, number>();

  constructor(epoch: EpochName) {
    this.#epoch = epoch;
  }

  /**
   * Notes an answer of a secondary.
   * @param sentMs - when the heartbeat was sent that it answers: the secondary heard it later than that
   * @param epoch - the epoch that the secondary follows
   */
  answered(secondary: string, sentMs: number, epoch: EpochName): void {
    if (!sameEpoch(epoch, this.#epoch)) return;
    this.#sentMs.set(secondary, Math.max(sentMs, this.#sentMs.get(secondary) ?? Number.NEGATIVE_INFINITY));
  }

  /** Returns when the contact with the one that has been silent longest was proven; undefined if one never answered. */
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
 * Returns whether the primary may accept a write, and whether it may acknowledge one: it asks both times, because a secondary may have been
 * promoted between the two.
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
 * Returns how long a promotion has to wait for the fence, in whole milliseconds.
 * @param silentMs - time since this cluster last answered a heartbeat, at least since its active node became active: the node before it
 *   answered only under its leader lease, so not later than that
 */
export function fenceWaitMs(fence: FenceSettings | undefined, silentMs: number): number {
  if (fence === undefined) return 0;
  return Math.max(0, Math.ceil(fence.afterMs * (1 + clockRateError) + fence.marginMs - silentMs));
}
