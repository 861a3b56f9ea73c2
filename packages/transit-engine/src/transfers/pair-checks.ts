import { createHmac, randomBytes } from 'node:crypto';
import { TimeSlice } from '@transitd/event-loop';
import { noBytes } from '../algorithms/aead.ts';
import { reasonOf } from '../key-pairs/key-formats.ts';
import type { KeyPairBytes, KeyPairScheme } from '../key-pairs/key-pair.ts';
import { type KeyType, keyType } from '../keys/key-type.ts';
import { managedSchemeOf } from '../managed/managed-pair.ts';
import { TransitError } from '../values/errors.ts';
import { invalidBackup, type KeyBackup, versionsMax } from './key-backup.ts';

/**
 * Maximum cost of the checks in one call, measured in checks of 4,096-bit RSA keys. Each takes 0.2 to 1 s, and clients wait some 60 s for a
 * response.
 */
const defaultCostMax = 32;
/** Maximum number of pairs that are remembered: as many as a backup can have. At most 20 MB. */
const passedMax = versionsMax;
/** Bytes of the MAC of a pair. */
const idBytes = 16;

/**
 * Checks the key pairs of backups. Testing the primes of an RSA key takes up to a second, and a backup can have a hundred thousand pairs
 * that take a millisecond, so one call checks pairs up to a total cost and remembers those that passed: the same request, sent again,
 * continues where the last one stopped. A pair is remembered by a MAC of its type and both halves under a key of this process.
 */
export class PairChecks {
  readonly #costMax: number;
  readonly #key = randomBytes(32);
  /** The oldest first. */
  readonly #passed = new Set<string>();

  constructor(costMax: number = defaultCostMax) {
    this.#costMax = costMax;
  }

  /**
   * Checks that the halves of each version belong together, and yields to the event loop on the way.
   * @throws TransitError `invalid_request`; `busy_generation` if the backup has more key pairs than one call checks
   */
  async check({ record, versions }: Pick<KeyBackup, 'record' | 'versions'>): Promise<void> {
    const type = keyType(record.type);
    if (type.keyPair === undefined && type.managed !== true) return;
    const slice = new TimeSlice();
    let cost = 0;
    for (const [at, { version, material, publicKey }] of versions.entries()) {
      if (slice.isOver) await slice.next();
      if (publicKey === undefined) continue; // only versions of managed keys may lack it
      const pair = { material: type.managed === true ? noBytes : material, publicKey };
      const id = this.#idOf(record.type, pair);
      if (this.#passed.has(id)) continue;
      const scheme = schemeOf(type, version, publicKey);
      cost += pair.material.length === 0 ? scheme.checkCost.publicHalf : scheme.checkCost.pair;
      if (cost > this.#costMax) throw unfinished(at, versions.length);
      await checkOne(scheme, version, pair);
      this.#remember(id);
    }
  }

  #remember(id: string): void {
    this.#passed.add(id);
    const [oldest] = this.#passed;
    if (this.#passed.size > passedMax && oldest !== undefined) this.#passed.delete(oldest);
  }

  /** A pair that is right for one type may be wrong for another: the number of bits, for example. */
  #idOf(type: string, { material, publicKey }: KeyPairBytes): string {
    const head = JSON.stringify([type, material.length]);
    const mac = createHmac('sha256', this.#key).update(head).update(material).update(publicKey).digest();
    return mac.toString('latin1', 0, idBytes);
  }
}

/** Returns the scheme that checks a version. Versions of managed keys have the scheme of their public half. */
function schemeOf({ keyPair }: KeyType, version: number, publicKey: Uint8Array): KeyPairScheme {
  const scheme = keyPair ?? managedSchemeOf(publicKey);
  if (scheme !== undefined) return scheme;
  throw invalidBackup(`version ${version} has a public half that managed keys do not support`);
}

async function checkOne(scheme: KeyPairScheme, version: number, pair: KeyPairBytes): Promise<void> {
  try {
    await scheme.check(pair);
  } catch (error) {
    if (!(error instanceof TransitError) || error.code === 'busy_generation') throw error;
    throw invalidBackup(`version ${version} is not a key pair of its type: ${reasonOf(error)}`);
  }
}

const unfinished = (checked: number, all: number): TransitError =>
  new TransitError(
    'busy_generation',
    `${checked} of ${all} key versions of the backup are checked; nothing was done: send the same request again to continue`,
  );
