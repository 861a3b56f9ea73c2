import type { LogIndex } from '@transitd/raft-core';

/** How long a primary waits until its secondaries confirm key material, and whether it uses material that is late. */
export interface AcknowledgeSettings {
  /** Time after which a secondary counts as late. The primary does not wait at all for a secondary that has been absent for this long. */
  readonly timeoutMs: number;
  /** `refuse`: the material is not used before it is confirmed. `degrade`: it is used all the same. */
  readonly onTimeout: 'refuse' | 'degrade';
}

export const acknowledgeMsMin = 1_000;
/** A request waits as long, so it must end before clients give up. */
export const acknowledgeMsMax = 30_000;
export const acknowledgeMsDefault = 5_000;

/** A secondary as the active node of its primary knows it. */
export interface SecondaryProgress {
  readonly secondary: string;
  /** The service index that it has committed on its quorum, reported on its present connection. */
  readonly acknowledged: LogIndex | undefined;
  /** For how long it has reported none: it is disconnected, or receives the whole state. */
  readonly absentMs: number;
}

/** `refuse` and `degrade` name the secondary that was waited for. */
export type Acknowledgement =
  | { readonly kind: 'confirmed' | 'wait' }
  | { readonly kind: 'refuse' | 'degrade'; readonly secondary: string };

/**
 * Decides whether key material in the entry with this service index may be used: only once each secondary that could be promoted has the
 * entry, so that no promotion loses material that was used. A set without secondaries confirms everything: nobody can be promoted.
 * @param secondaries - those that have had a state; see `following`
 */
export function acknowledgementOf(
  index: LogIndex,
  secondaries: readonly SecondaryProgress[],
  { settings, waitedMs }: { readonly settings: AcknowledgeSettings; readonly waitedMs: number },
): Acknowledgement {
  const missing = secondaries.filter(({ acknowledged }) => acknowledged === undefined || acknowledged < index);
  const [first] = missing;
  if (first === undefined) return { kind: 'confirmed' };
  const absent = missing.find(({ absentMs }) => absentMs >= settings.timeoutMs);
  if (absent === undefined && waitedMs < settings.timeoutMs) return { kind: 'wait' };
  return { kind: settings.onTimeout, secondary: (absent ?? first).secondary };
}
