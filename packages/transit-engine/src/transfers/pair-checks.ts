import { createHmac, randomBytes } from 'node:crypto';
import { nextTurn } from '@transitd/event-loop';
import { noBytes } from '../algorithms/aead.ts';
import { reasonOf } from '../key-pairs/key-formats.ts';
import type { KeyPairBytes, KeyPairScheme } from '../key-pairs/key-pair.ts';
import { keyType } from '../keys/key-type.ts';
import { managedScheme } from '../managed/managed-pair.ts';
import { TransitError } from '../values/errors.ts';
import { invalidBackup, type KeyBackup } from './key-backup.ts';

/**
 * Maximum cost of the checks in one call, measured in checks of 4,096-bit RSA keys. Each takes 0.2 to 1 s, and clients wait some 60 s for a
 * response.
 */
const defaultCostMax = 32;
/** Maximum number of pairs that are remembered: more than the largest backup that a request can contain. About 3 MB. */
const passedMax = 32_768;
/** Number of checks between two turns of the event loop: a few milliseconds of work. */
const checksPerTurn = 10;

/**
 * Checks the key pairs of backups. Testing the primes of an RSA key takes up to a second, so one call checks a limited number of them and
 * remembers those that passed: the same request, sent again, continues where the last one stopped. A pair is remembered by a MAC of its
 * type and both halves under a key of this process.
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
   * @throws TransitError `invalid_request`; `busy_generation` if the backup has more RSA keys than one call checks
   */
  async check({ record, versions }: Pick<KeyBackup, 'record' | 'versions'>): Promise<void> {
    const { keyPair, managed } = keyType(record.type);
    if (managed) return checkManaged(versions);
    if (keyPair === undefined) return;
    let cost = 0;
    for (const [at, { version, material, publicKey = noBytes }] of versions.entries()) {
      if (at % checksPerTurn === checksPerTurn - 1) await nextTurn();
      const pair = { material, publicKey };
      const ownCost = material.length === 0 ? 0 : (keyPair.checkCost ?? 0);
      if (ownCost === 0) await checkOne(keyPair, version, pair);
      else if (!this.#passed.has(this.#idOf(record.type, pair))) {
        cost += ownCost;
        if (cost > this.#costMax) throw unfinished(at, versions.length);
        await checkOne(keyPair, version, pair);
        this.#remember(this.#idOf(record.type, pair));
      }
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
    return createHmac('sha256', this.#key).update(head).update(material).update(publicKey).digest('base64');
  }
}

async function checkOne(keyPair: KeyPairScheme, version: number, pair: KeyPairBytes): Promise<void> {
  try {
    await keyPair.check(pair);
  } catch (error) {
    if (!(error instanceof TransitError) || error.code === 'busy_generation') throw error;
    throw invalidBackup(`version ${version} is not a key pair of its type: ${reasonOf(error)}`);
  }
}

async function checkManaged(versions: KeyBackup['versions']): Promise<void> {
  for (const { version, publicKey } of versions) {
    if (publicKey === undefined || (await managedScheme(publicKey)) !== undefined) continue;
    throw invalidBackup(`version ${version} has a public half that managed keys do not support`);
  }
}

const unfinished = (checked: number, all: number): TransitError =>
  new TransitError(
    'busy_generation',
    `${checked} of ${all} RSA key versions of the backup are checked; nothing was done: send the same request again to continue`,
  );
