import { createHmac, timingSafeEqual } from 'node:crypto';
import type { EpochName, ReplicationState } from '@transitd/storage-fsm';

/**
 * Compares the epoch of this cluster with that of another cluster of its set. `superseded`: the other epoch is higher, or has the same
 * number and another id. In the second case both clusters are superseded, because neither can know which one should remain the primary.
 * `lower`: this cluster supersedes the other one. `same`: both are in one epoch.
 */
export function meetingOf(own: EpochName, other: EpochName): 'same' | 'lower' | 'superseded' {
  if (other.number > own.number) return 'superseded';
  if (other.number < own.number) return 'lower';
  return other.id === own.id ? 'same' : 'superseded';
}

/** Returns whether a cluster in this state must stop serving because of the other epoch, if that epoch exists. */
export function isSupersededBy({ role, epochs }: Pick<ReplicationState, 'role' | 'epochs'>, other: EpochName): boolean {
  const own = epochs.at(-1);
  return role === 'primary' && own !== undefined && meetingOf(own, other) === 'superseded';
}

/** An epoch that another cluster names as its own. */
export interface Claim {
  readonly set: string;
  readonly epoch: EpochName;
  /** As {@link proofOf} returns it. Absent: the other cluster cannot read the key of the set. */
  readonly proof?: string | undefined;
}

/** Bytes of the key with which the clusters of a set prove that they have its state. It is a record of that state, behind the barrier. */
export const successionKeyBytes = 32;

/**
 * More promotions than this between two meetings of two clusters do not happen. Without a limit one claim could use up the numbers, and no
 * later promotion would supersede it.
 */
const promotionsMax = 65_536;

/**
 * Returns the proof that an epoch of the set exists: HMAC-SHA-256 under the key of the set, in hexadecimal. Only a cluster that has
 * received the state of the set, and is unsealed, can make it. Its statement stays true, so a repeated proof proves nothing new.
 */
export const proofOf = (key: Uint8Array, set: string, { number, id }: EpochName): string =>
  createHmac('sha256', key).update(`transitd epoch\n${set}\n${number}\n${id}`).digest('hex');

/** Returns the claim of a cluster in that epoch. @param key - undefined if it cannot read the key of the set */
export const claimOf = (set: string, { number, id }: EpochName, key: Uint8Array | undefined): Claim => {
  const epoch = { number, id };
  return { set, epoch, ...(key !== undefined && { proof: proofOf(key, set, epoch) }) };
};

/**
 * Judges the epoch of another cluster. `none`: it does not exclude this cluster. `proven`: this cluster must stop serving. `unproven`: it
 * would have to, but the credential of a secondary alone, or a copy of it, must not end the service of its primary.
 * @param key - the key of the set as this cluster knows it; undefined if it cannot read it
 */
export function judgeClaim(
  state: ReplicationState | undefined,
  { set, epoch, proof }: Claim,
  key: Uint8Array | undefined,
): 'none' | 'proven' | 'unproven' {
  if (state === undefined || state.set !== set || !isSupersededBy(state, epoch)) return 'none';
  const isPlausible = epoch.number - (state.epochs.at(-1)?.number ?? 0) <= promotionsMax;
  if (!isPlausible || key === undefined || proof === undefined) return 'unproven';
  const [expected, given] = [proofOf(key, set, epoch), proof].map((hex) => Buffer.from(hex, 'hex'));
  const isEqual = expected !== undefined && given?.length === expected.length && timingSafeEqual(expected, given);
  return isEqual ? 'proven' : 'unproven';
}
