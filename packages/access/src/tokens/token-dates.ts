import { isDeepStrictEqual } from 'node:util';
import type { NamedLocks } from '@transitd/event-loop';
import { changeRecords, type Store } from '@transitd/storage-fsm';
import type { ClockDispute } from '../values/clock-dispute.ts';
import { type Dates, type DisputedDates, earlierBy } from '../values/disputed-dates.ts';
import { AccessError } from '../values/errors.ts';
import { tokenPath } from './token-paths.ts';
import { decodeTokenRecord, type TokenRecord } from './token-record.ts';
import { rewriteTransaction } from './token-transactions.ts';

interface TokenDatesOptions {
  readonly store: Store;
  readonly disputedDates: DisputedDates;
  /** Locks by the token's id. */
  readonly locks: NamedLocks;
}

/** Remembers tokens that are dated while the clocks disagree, and corrects their dates. */
export class TokenDates {
  readonly #parts: TokenDatesOptions;

  constructor(parts: TokenDatesOptions) {
    this.#parts = parts;
  }

  /** Returns the present dispute of the clocks. Call this before the time is read that dates a token. */
  dispute(): ClockDispute | undefined {
    return this.#parts.disputedDates.current();
  }

  /** Records that a token was created and dated during `dispute`; does nothing without a dispute. */
  created(id: string, record: TokenRecord, dispute: ClockDispute | undefined): void {
    if (dispute !== undefined) this.#note(id, dispute, record, earlierBy(record, dispute));
  }

  /**
   * Records that a token was renewed during `dispute`; does nothing without a dispute.
   * @param renew - renews the token at a time that is earlier by that many ms, from its true creation date
   */
  renewed(
    id: string,
    record: TokenRecord,
    dispute: ClockDispute | undefined,
    renew: (createdMs: number, earlierByMs: number) => TokenRecord,
  ): void {
    if (dispute === undefined) return;
    const { createdMs } = this.#parts.disputedDates.byEarlier(tokenPath(id)) ?? record;
    this.#note(id, dispute, record, renew(createdMs, dispute.differenceMs));
  }

  #note(id: string, dispute: ClockDispute, written: Dates, byEarlier: Dates): void {
    this.#parts.disputedDates.note(tokenPath(id), dispute, {
      written: datesOf(written),
      byEarlier: datesOf(byEarlier),
      rewrite: (corrected) => this.#parts.locks.run(id, () => this.#rewrite(id, corrected)),
    });
  }

  /** @throws AccessError `record_unreadable`, `too_many_conflicts`; StoreError */
  async #rewrite(id: string, corrected: (stored: Dates) => Dates): Promise<void> {
    const { store } = this.#parts;
    const next = async () => {
      const stored = await store.get(tokenPath(id));
      if (stored === undefined) return undefined;
      const record = decodeTokenRecord(stored.value);
      const dates = corrected(datesOf(record));
      if (isDeepStrictEqual(dates, datesOf(record))) return undefined;
      return rewriteTransaction({ id, record, revision: stored.revision }, { ...record, ...dates });
    };
    const conflict = () => new AccessError('too_many_conflicts', 'the token was changed by other requests at the same time');
    await changeRecords(store, next, conflict);
  }
}

const datesOf = ({ createdMs, renewedMs, expiresMs }: Dates): Dates => ({ createdMs, renewedMs, expiresMs });
