import { BarrierError } from '../records/errors.ts';

/** When the barrier rotates its key automatically. */
export interface RotationConfig {
  /** If false, only the hard limit `operationsLimit` applies. */
  readonly enabled: boolean;
  /** Maximum number of values encrypted under one key, 1,000,000 to 2^31. */
  readonly maxOperations: number;
  /** Maximum age of a key; 0 for no limit, otherwise at least a day. */
  readonly intervalMs: number;
}

/** Term, age and use of the newest key. */
export interface KeyStatus {
  readonly term: number;
  readonly installTime: Date;
  /** Number of values written since `installTime`, the same on all nodes. */
  readonly encryptions: number;
}

/**
 * Maximum number of values under one key. For random nonces NIST SP 800-38D §8.3 allows 2^32; half of that leaves room for values that are
 * encrypted but refused before they are counted.
 */
export const operationsLimit = 2 ** 31;

export const defaultRotation: RotationConfig = { enabled: true, maxOperations: operationsLimit, intervalMs: 0 };

const operationsMin = 1_000_000;
const intervalMinMs = 24 * 60 * 60 * 1000;

/** Returns whether the newest key has reached its limit of use or age. */
export function rotationDue(config: RotationConfig, status: KeyStatus, nowMs: number): boolean {
  if (status.encryptions >= operationsLimit) return true;
  const old = config.intervalMs > 0 && nowMs - status.installTime.getTime() >= config.intervalMs;
  return config.enabled && (old || status.encryptions >= config.maxOperations);
}

/** @throws BarrierError `invalid_rotation_config` */
export function checkRotation({ enabled, maxOperations, intervalMs }: RotationConfig): RotationConfig {
  if (!Number.isInteger(maxOperations) || maxOperations < operationsMin || maxOperations > operationsLimit)
    throw new BarrierError('invalid_rotation_config', `max_operations must be from ${operationsMin} to ${operationsLimit}`);
  if (!Number.isSafeInteger(intervalMs) || (intervalMs !== 0 && intervalMs < intervalMinMs))
    throw new BarrierError('invalid_rotation_config', 'interval must be 0 or at least 24h');
  return { enabled, maxOperations, intervalMs };
}

const format = 1;

export const encodeRotation = (config: RotationConfig): Buffer => Buffer.from(JSON.stringify({ format, ...config }));

/** @throws BarrierError `barrier_corrupt` */
export function decodeRotation(stored: Uint8Array): RotationConfig {
  const record = JSON.parse(Buffer.from(stored).toString('utf8')) as Record<string, unknown>;
  const { enabled, maxOperations, intervalMs } = record;
  if (
    record['format'] !== format ||
    typeof enabled !== 'boolean' ||
    typeof maxOperations !== 'number' ||
    typeof intervalMs !== 'number'
  )
    throw new BarrierError('barrier_corrupt', 'the rotation configuration has an unknown format');
  return checkRotation({ enabled, maxOperations, intervalMs });
}
