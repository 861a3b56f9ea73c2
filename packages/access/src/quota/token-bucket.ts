/** A token bucket: the remaining requests at a time, and the end of a block. Times are in milliseconds. */
export interface Bucket {
  readonly left: number;
  readonly atMs: number;
  readonly blockedUntilMs: number;
}

/** Allows `rate` requests in `intervalS`, also in one burst. A caller that exceeds it is blocked for `blockIntervalS`. */
export interface Rate {
  readonly rate: number;
  readonly intervalS: number;
  readonly blockIntervalS: number;
}

/** The decision about one request. */
export interface Admission {
  readonly bucket: Bucket;
  readonly admitted: boolean;
  /** Remaining whole requests. */
  readonly remaining: number;
  /** Milliseconds until the bucket is full or, for a refused request, until the next one is admitted. */
  readonly waitMs: number;
}

/**
 * Takes one request from a bucket that refills at a constant rate.
 * @param present - undefined for a new caller, whose bucket is full
 */
export function admission(present: Bucket | undefined, { rate, intervalS, blockIntervalS }: Rate, nowMs: number): Admission {
  const perMs = rate / (intervalS * 1000);
  const size = Math.max(1, rate);
  if (present !== undefined && nowMs < present.blockedUntilMs)
    return { bucket: present, admitted: false, remaining: 0, waitMs: present.blockedUntilMs - nowMs };
  // If the clock was set back, nothing is refilled.
  const left = present === undefined ? size : Math.min(size, present.left + Math.max(0, nowMs - present.atMs) * perMs);
  if (left >= 1) {
    const bucket = { left: left - 1, atMs: nowMs, blockedUntilMs: 0 };
    return { bucket, admitted: true, remaining: Math.floor(bucket.left), waitMs: Math.ceil((size - bucket.left) / perMs) };
  }
  const blockedUntilMs = blockIntervalS === 0 ? 0 : nowMs + blockIntervalS * 1000;
  const waitMs = Math.max(Math.ceil((1 - left) / perMs), blockedUntilMs - nowMs);
  return { bucket: { left, atMs: nowMs, blockedUntilMs }, admitted: false, remaining: 0, waitMs };
}
