import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '@transitd/process';
import type { Etcd } from '../etcd.ts';
import { LeaseEnd } from '../lease/lease-end.ts';

export interface RegistrationOptions {
  readonly etcd: Etcd;
  readonly key: string;
  readonly leaseSeconds: number;
  readonly retryMs: number;
  readonly clock: Clock;
  readonly onFault: (error: Error) => void;
  /** Called when the record no longer counts, before etcd deletes it. */
  readonly onEnded: () => void;
}

/**
 * Keeps the record by which a node makes itself known in etcd, under a lease. Until {@link heldUntilMs} every reader of the records finds
 * it: etcd ends the lease only after this node counts it as ended.
 */
export class Registration {
  readonly #options: RegistrationOptions;
  readonly #leaseEnd = new LeaseEnd();
  readonly #closing = new AbortController();
  #record: Uint8Array | undefined;
  /** Revision of etcd at which the present record was written. */
  #revision = 0;
  #changed = new AbortController();
  readonly #running: Promise<void>;

  constructor(options: RegistrationOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** Writes this record from now on; undefined deletes it. */
  set(record: Uint8Array | undefined): void {
    this.#record = record;
    this.#end();
    this.#changed.abort();
  }

  /**
   * Returns until when the record counts; negative infinity if it does not.
   * @param revision - of the node's copy. A copy from before the record was written may lack commits whose authors did not know this node:
   * they were made while an earlier record was gone already.
   */
  heldUntilMs(revision: number): number {
    return revision >= this.#revision ? this.#leaseEnd.ms : Number.NEGATIVE_INFINITY;
  }

  async close(): Promise<void> {
    this.#end();
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { retryMs, onFault } = this.#options;
    while (!this.#closing.signal.aborted) {
      this.#changed = new AbortController();
      const signal = AbortSignal.any([this.#changed.signal, this.#closing.signal]);
      const record = this.#record;
      if (record === undefined) {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        continue;
      }
      try {
        await this.#keep(record, signal);
      } catch (error) {
        if (!this.#closing.signal.aborted) onFault(error instanceof Error ? error : new Error(String(error)));
      }
      if (!signal.aborted) await delay(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Resolves when the record has changed, or the lease has ended. */
  async #keep(record: Uint8Array, signal: AbortSignal): Promise<void> {
    const { etcd, key, leaseSeconds, clock } = this.#options;
    let sentMs = clock.nowMs();
    const { id, ttlSeconds } = await etcd.grantLease(leaseSeconds);
    try {
      // Written only if no record exists: an earlier request of unknown outcome must not move the key to a lease that ends before this one.
      const success = [{ kind: 'put' as const, key, value: record, lease: id }];
      const answer = await etcd.txn({ compares: [{ key, modRevision: 0 }], success, failure: [] });
      if (!answer.succeeded) throw new Error('an earlier record of this node has not ended yet');
      this.#revision = answer.revision;
      for (let ttl = ttlSeconds; ttl > 0 && !signal.aborted; ) {
        this.#leaseEnd.renewed({ sentMs, ttlSeconds: ttl });
        await delay((leaseSeconds * 1000) / 3, undefined, { signal }).catch(() => undefined);
        if (signal.aborted) return;
        sentMs = clock.nowMs();
        ttl = await this.#keepAlive(id, signal);
      }
    } finally {
      this.#end();
      await etcd.revokeLease(id).catch(() => undefined);
    }
  }

  /** Returns the time to live in seconds; 0 if the lease has ended. @throws EtcdError when the lease has ended for this node */
  async #keepAlive(id: bigint, signal: AbortSignal): Promise<number> {
    const { etcd, retryMs, clock, onFault } = this.#options;
    for (;;) {
      try {
        return await etcd.keepAlive(id);
      } catch (error) {
        if (signal.aborted || clock.nowMs() >= this.#leaseEnd.ms) throw error;
        onFault(error instanceof Error ? error : new Error(String(error)));
        await delay(retryMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  #end(): void {
    this.#leaseEnd.ended();
    this.#options.onEnded();
  }
}
