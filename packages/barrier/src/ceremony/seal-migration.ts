import { createHash } from 'node:crypto';
import type { RecordClock } from '@transitd/process';
import { BarrierError } from '../records/errors.ts';
import type { StoredSeal } from '../seal/core-records.ts';
import { unwrapByShares } from '../seal/root-key-wrapping.ts';
import { idOf, isSameSeal, type OnSealWritten, type SealConfig, sealOf } from '../seal/seal-config.ts';
import type { SealKeeper } from '../seal/seal-keeper.ts';
import type { SealRecord } from '../seal/seal-record.ts';
import { UnsealShares } from '../seal/unseal-shares.ts';

/** How long shares, and the agreement of enough holders, are kept. */
const validMs = 600_000;

export interface SealMigrationParts {
  readonly seal: SealKeeper;
  readonly config: SealConfig;
  readonly clock: RecordClock;
  readonly onSealWritten?: OnSealWritten;
}

/** The agreement of enough holders of the shares of the seal with this revision. */
interface Agreement {
  readonly revision: number;
  /** The key that the shares combine to, if the new seal is a Shamir seal; otherwise empty. */
  readonly sharedKey: Buffer;
  /** SHA-256 of the root key that the shares of a Shamir seal opened. */
  readonly opened?: Buffer | undefined;
}

/** The result of one share. */
export type MigrationStep =
  | { readonly complete: false }
  /** Enough holders agree. `rootKey`, which the caller wipes, if the shares unseal the present seal. */
  | { readonly complete: true; readonly rootKey?: Buffer };

/**
 * Moves the records from the seal `migrateFrom` to the configured seal, once enough holders of the present shares agree. The shares stay in
 * force: key shares become recovery shares, and recovery shares become the key shares of a Shamir seal. The agreement is in memory only.
 * One transaction replaces the seal, so after a crash the records are sealed by exactly one of both.
 */
export class SealMigration {
  readonly #parts: SealMigrationParts;
  readonly #shares = new UnsealShares();
  #agreed: Agreement | undefined;
  #untilMs = 0;

  constructor(parts: SealMigrationParts) {
    this.#parts = parts;
  }

  /** Number of different shares given so far. */
  get progress(): number {
    return this.#shares.progress;
  }

  get nonce(): string {
    return this.#shares.nonce;
  }

  /** Whether the records are still sealed by the seal that the configuration moves from. */
  isPending(record: SealRecord | undefined): boolean {
    const { migrateFrom } = this.#parts.config;
    return record !== undefined && migrateFrom !== undefined && isSameSeal(record, idOf(migrateFrom));
  }

  /**
   * Adds one share of the present seal.
   * @throws BarrierError `seal_mismatch` if there is nothing to migrate, `invalid_share`, `barrier_corrupt`
   */
  async addShare(stored: StoredSeal, share: Uint8Array): Promise<MigrationStep> {
    const { config } = this.#parts;
    const { record, revision } = stored;
    sealOf(config, record);
    if (!this.isPending(record))
      throw new BarrierError(
        'seal_mismatch',
        `there is no seal to migrate: the data is sealed with type ${record.type}, as seal.type says`,
      );
    const shares = this.#shares.add(stored, share);
    this.#untilMs = this.#parts.clock.dueMs() + validMs;
    if (!shares.complete) return { complete: false };
    try {
      const rootKey = record.type === 'shamir' ? await unwrapByShares(record, shares) : undefined;
      const sharedKey = config.type === 'shamir' ? await shares.combine() : Buffer.alloc(0);
      this.#agree({ revision, sharedKey, opened: rootKey && createHash('sha256').update(rootKey).digest() });
      return { complete: true, ...(rootKey !== undefined && { rootKey }) };
    } finally {
      this.#shares.drop();
    }
  }

  /**
   * Replaces the seal if enough holders have agreed. If that fails, the agreement stays, and a later call tries again.
   * @returns whether the seal was replaced
   * @throws BarrierError `conflict`: the shares must be given again; `barrier_corrupt`, `seal_mismatch`; ProviderError; StoreError, such as
   * `not_leader`
   */
  async migrate(): Promise<boolean> {
    this.expire();
    if (this.#agreed === undefined) return false;
    const { config, seal } = this.#parts;
    const agreed = this.#agreed;
    const { record, revision } = await seal.current();
    if (!this.isPending(record)) {
      this.drop();
      return false;
    }
    const { shares, threshold, shareHashes } = record;
    // A copy: dropping the agreement meanwhile wipes the original, and a key of zeros must never wrap the root key.
    const sharedKey = Buffer.from(agreed.sharedKey);
    const replacement = { to: idOf(config), counts: { shares, threshold }, shareHashes, sharedKey, revision };
    try {
      if (this.#agreed === agreed && revision === agreed.revision) {
        await seal.verifyRecord({ record, revision }, agreed.opened);
        if ((await seal.replace(replacement)) === 'committed') {
          this.drop();
          this.#parts.onSealWritten?.('migrated');
          return true;
        }
      }
    } finally {
      sharedKey.fill(0);
    }
    this.drop();
    throw new BarrierError('conflict', 'the seal has changed; give the shares for its migration again');
  }

  /** Drops shares and an agreement that are too old. */
  expire(): void {
    if (this.#parts.clock.dueMs() >= this.#untilMs) this.drop();
  }

  /** Wipes the shares given so far, unless they were enough. */
  dropShares(): void {
    this.#shares.drop();
  }

  /** Wipes the shares and ends the agreement. */
  drop(): void {
    this.#shares.drop();
    this.#agreed?.sharedKey.fill(0);
    this.#agreed = undefined;
  }

  #agree(agreed: Agreement): void {
    this.#agreed?.sharedKey.fill(0);
    this.#agreed = agreed;
  }
}
