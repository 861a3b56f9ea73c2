import { parseJsonObject } from '../formats/json-object.ts';
import { DamagedRecord } from '../values/errors.ts';
import { type UseCounts, useKinds } from './use-tally.ts';

/** The uses of one version: their numbers, and the times of the first and the last in Unix milliseconds. */
export interface VersionUse extends UseCounts {
  readonly firstMs: number;
  readonly lastMs: number;
}

/** The recorded uses of one key. They belong to its id: a new key of the same name has none. */
export interface KeyUsage {
  readonly id: string;
  /** Uses of some version before this time were lost, in Unix milliseconds; 0 if none were. */
  readonly lostMs: number;
  readonly versions: ReadonlyMap<number, VersionUse>;
}

/** Most versions of one key whose uses are recorded. Further ones replace the lowest, whose uses are lost. */
export const usedVersionsMax = 10_000;

export const unusedKey = (id: string): KeyUsage => ({ id, lostMs: 0, versions: new Map() });

/** Returns the sum of two uses of the same version. */
function addedUse(a: VersionUse | undefined, b: VersionUse): VersionUse {
  if (a === undefined) return b;
  return {
    encryptions: a.encryptions + b.encryptions,
    decryptions: a.decryptions + b.decryptions,
    signatures: a.signatures + b.signatures,
    verifications: a.verifications + b.verifications,
    firstMs: Math.min(a.firstMs, b.firstMs),
    lastMs: Math.max(a.lastMs, b.lastMs),
  };
}

/**
 * Adds uses to those of a key.
 * @param lowest - versions below it are deleted, so their uses are forgotten
 */
export function addedUses(
  usage: KeyUsage,
  uses: Iterable<readonly [version: number, use: VersionUse]>,
  { lowest, nowMs }: { readonly lowest: number; readonly nowMs: number },
): KeyUsage {
  const versions = new Map(usage.versions);
  for (const [version, use] of uses) versions.set(version, addedUse(versions.get(version), use));
  const kept = [...versions].filter(([version]) => version >= lowest).sort(([a], [b]) => a - b);
  const isLost = kept.length > usedVersionsMax;
  return { id: usage.id, lostMs: isLost ? nowMs : usage.lostMs, versions: new Map(kept.slice(-usedVersionsMax)) };
}

const formatVersion = 1;

/** Encodes JSON in UTF-8; each version as a row of numbers, because the record is written each minute. */
export const encodeKeyUsage = ({ id, lostMs, versions }: KeyUsage): Uint8Array =>
  Buffer.from(
    JSON.stringify({
      format: formatVersion,
      id,
      lostMs,
      versions: Array.from(versions, ([version, use]) => [
        version,
        ...useKinds.map((kind) => use[kind]),
        use.firstMs,
        use.lastMs,
      ]),
    }),
  );

/** @throws DamagedRecord for anything that {@link encodeKeyUsage} did not write */
export function decodeKeyUsage(bytes: Uint8Array): KeyUsage {
  const { format, id, lostMs, versions } = parseJsonObject(bytes);
  if (format !== formatVersion || typeof id !== 'string' || typeof lostMs !== 'number' || !Array.isArray(versions))
    throw new DamagedRecord('a record of the uses of a key has a format unknown to this program');
  return { id, lostMs, versions: new Map(versions.map(versionIn)) };
}

function versionIn(row: unknown): [number, VersionUse] {
  if (!Array.isArray(row) || row.length !== 7 || !row.every((each) => Number.isSafeInteger(each)))
    throw new DamagedRecord('a record of the uses of a key has a damaged row');
  const [version, encryptions, decryptions, signatures, verifications, firstMs, lastMs] = row as [
    ...[number, number, number, number],
    ...[number, number, number],
  ];
  return [version, { encryptions, decryptions, signatures, verifications, firstMs, lastMs }];
}
