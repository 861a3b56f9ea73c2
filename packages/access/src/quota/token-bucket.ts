/** Requests that a caller may still make, as of a time; and until when it is kept out. Milliseconds. */
export interface Bucket {
  readonly left: number;
  readonly atMs: number;
  readonly blockedUntilMs: number;
}

/** `rate` requests in `intervalS`, all of them at once if need be; whoever asks for more is kept out for `blockIntervalS`. */
export interface Rate {
  readonly rate: number;
  readonly intervalS: number;
  readonly blockIntervalS: number;
}

/** What becomes of one request. */
export interface Admission {
  readonly bucket: Bucket;
  readonly admitted: boolean;
  /** Whole requests that are left. */
  readonly remaining: number;
  /** Milliseconds until another one is admitted, or, where one is, until the bucket is full. */
  readonly waitMs: number;
}

/** Takes one request out of the bucket, which fills up evenly. @param present - undefined for a caller that is not known: a full one */
export function admission(present: Bucket | undefined, { rate, intervalS, blockIntervalS }: Rate, nowMs: number): Admission {
  const perMs = rate / (intervalS * 1000);
  const size = Math.max(1, rate);
  if (present !== undefined && nowMs < present.blockedUntilMs)
    return { bucket: present, admitted: false, remaining: 0, waitMs: present.blockedUntilMs - nowMs };
  // A clock that was set back refills nothing.
  const left = present === undefined ? size : Math.min(size, present.left + Math.max(0, nowMs - present.atMs) * perMs);
  if (left >= 1) {
    const bucket = { left: left - 1, atMs: nowMs, blockedUntilMs: 0 };
    return { bucket, admitted: true, remaining: Math.floor(bucket.left), waitMs: Math.ceil((size - bucket.left) / perMs) };
  }
  const blockedUntilMs = blockIntervalS === 0 ? 0 : nowMs + blockIntervalS * 1000;
  const waitMs = Math.max(Math.ceil((1 - left) / perMs), blockedUntilMs - nowMs);
  return { bucket: { left, atMs: nowMs, blockedUntilMs }, admitted: false, remaining: 0, waitMs };
}
