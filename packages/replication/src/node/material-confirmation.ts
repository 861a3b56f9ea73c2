import type { Clock, Logger } from '@transitd/process';
import { type Confirmation, type SecondaryConfirmation, TransitError } from '@transitd/transit-engine';
import { following } from '../registry/registry.ts';
import type { StoredRegistry } from '../registry/stored-registry.ts';
import {
  type Acknowledgement,
  type AcknowledgeSettings,
  acknowledgementOf,
  type SecondaryProgress,
} from '../roles/acknowledgement.ts';
import type { AcknowledgeSetting } from './acknowledge-setting.ts';
import type { PrimarySide } from './primary-side.ts';
import type { ReplicationRole } from './replication-role.ts';

interface MaterialConfirmationOptions {
  /** Whether the secondaries must have key material before it is used. */
  readonly setting: AcknowledgeSetting;
  readonly registry: Pick<StoredRegistry, 'current' | 'isRead' | 'refresh'>;
  readonly primary: Pick<PrimarySide, 'connected' | 'onAcknowledged'>;
  /** How many requests may wait for secondaries that are late. */
  readonly lateRequestsMax: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How often each end of a wait for secondaries was met on this node. */
interface ConfirmationCounts {
  /** Nothing was made. */
  readonly refused: number;
  /** The material is stored, and used later. */
  readonly late: number;
  /** The material was used without a confirmation. */
  readonly degraded: number;
}

/** A wait also looks again after this time, because a secondary may have been revoked, or this node replaced as the active one. */
const lookMs = 100;

/** Secondaries that have not confirmed after this time are late. */
const lateMs = 1_000;

/** The secondaries of this cluster as its active node knows them: whether they have key material, so that it may be used. */
export class MaterialConfirmation implements SecondaryConfirmation {
  /** Whether they must have it before it is used. */
  readonly setting: AcknowledgeSetting;
  readonly #role: ReplicationRole;
  readonly #options: MaterialConfirmationOptions;
  readonly #absentSinceMs = new Map<string, number>();
  readonly #wakers = new Set<() => void>();
  /** The requests that wait, oldest first, each with the time when it began to. */
  readonly #waiting = new Set<{ readonly sinceMs: number }>();
  /** The term in which the absence of secondaries was noted. */
  #term = 0;
  #counts = { refused: 0, late: 0, degraded: 0 };

  constructor(role: ReplicationRole, options: MaterialConfirmationOptions) {
    this.#role = role;
    this.#options = options;
    this.setting = options.setting;
    options.primary.onAcknowledged(() => {
      for (const wake of [...this.#wakers]) wake();
    });
  }

  get counts(): ConfirmationCounts {
    return this.#counts;
  }

  /** Reads the setting for reports, and notes which secondaries are absent. Call it from time to time on each node of a primary. */
  async tick(): Promise<void> {
    await this.setting.read().catch(() => undefined); // each use reads it again
    if (this.#role.isActive) this.#observe();
  }

  #observe(): void {
    const { registry, primary, clock } = this.#options;
    const { term } = this.#role;
    if (this.#term !== term) {
      this.#term = term;
      this.#absentSinceMs.clear();
    }
    const present = new Set(primary.connected.filter(({ acknowledged }) => acknowledged).map(({ secondary }) => secondary));
    const secondaries = following(registry.current);
    for (const secondary of secondaries)
      if (!present.has(secondary) && !this.#absentSinceMs.has(secondary)) this.#absentSinceMs.set(secondary, clock.nowMs());
    for (const secondary of [...this.#absentSinceMs.keys()])
      if (present.has(secondary) || !secondaries.includes(secondary)) this.#absentSinceMs.delete(secondary);
  }

  async required(): Promise<boolean> {
    const settings = await this.#settings();
    if (settings === undefined) return false;
    if ([...this.#waiting].filter((request) => this.#isLate(request)).length >= this.#options.lateRequestsMax)
      throw this.#refused(
        `${this.#options.lateRequestsMax} requests already wait for the secondaries to confirm key material`,
        'nothing was done, try again later',
      );
    if (settings.onTimeout === 'degrade') return true;
    // Any position shows that the secondary is there. Without it, material would be stored that cannot be used.
    const decision = await this.#decision(0, settings, true);
    if (decision.kind === 'confirmed') return true;
    const secondary = 'secondary' in decision ? `the secondary ${decision.secondary}` : 'a secondary';
    throw this.#refused(
      `${secondary} is not connected, and the replication set acknowledges key material`,
      'nothing was done, try again when it is connected',
    );
  }

  #refused(reason: string, remedy: string): TransitError {
    this.#counts = { ...this.#counts, refused: this.#counts.refused + 1 };
    return new TransitError('unconfirmed', `${reason}: ${remedy}`);
  }

  async of(index: number, wait: boolean): Promise<Confirmation> {
    const settings = await this.#settings();
    if (settings === undefined) return 'confirmed';
    const decision = await this.#decision(index, settings, wait);
    if (decision.kind === 'confirmed') return 'confirmed';
    if (decision.kind === 'degrade') {
      this.#counts = { ...this.#counts, degraded: this.#counts.degraded + 1 };
      const { secondary } = decision;
      this.#options.log.warn({ secondary }, 'key material is used that a secondary has not confirmed: a promotion may lose it');
      return 'degraded';
    }
    if (wait) this.#counts = { ...this.#counts, late: this.#counts.late + 1 };
    return 'unconfirmed';
  }

  /** Returns the setting if it is in force, that is, on a primary. */
  async #settings(): Promise<AcknowledgeSettings | undefined> {
    return this.#role.state?.role === 'primary' ? this.setting.read() : undefined;
  }

  async #decision(index: number, settings: AcknowledgeSettings, wait: boolean): Promise<Acknowledgement> {
    const { registry, clock } = this.#options;
    await registry.refresh();
    const request = { sinceMs: clock.nowMs() };
    try {
      for (;;) {
        const waitedMs = clock.nowMs() - request.sinceMs;
        // A backup may contain material that was not confirmed. Before they have the restored state, secondaries do not have it.
        const needed = Math.max(index, index > 0 ? (this.#role.state?.restoredAt ?? 0) : 0);
        const decision: Acknowledgement = registry.isRead
          ? acknowledgementOf(needed, this.#progress(), { settings, waitedMs })
          : { kind: 'wait' };
        const hasWaited = waitedMs > settings.timeoutMs || this.#isSurplus(request);
        if (decision.kind !== 'wait' || !wait || !this.#role.isActive || hasWaited) return decision;
        this.#waiting.add(request);
        await this.#woken();
      }
    } finally {
      this.#waiting.delete(request);
    }
  }

  #isLate({ sinceMs }: { readonly sinceMs: number }): boolean {
    return this.#options.clock.nowMs() - sinceMs >= lateMs;
  }

  /** Returns whether as many requests as may wait for late secondaries have waited longer: this one gives its place to other work. */
  #isSurplus(request: { readonly sinceMs: number }): boolean {
    return this.#isLate(request) && [...this.#waiting].indexOf(request) >= this.#options.lateRequestsMax;
  }

  #progress(): SecondaryProgress[] {
    const { registry, primary, clock } = this.#options;
    this.#observe();
    const positions = new Map(primary.connected.map(({ secondary, acknowledged }) => [secondary, acknowledged?.index]));
    return following(registry.current).map((secondary) => {
      const sinceMs = this.#absentSinceMs.get(secondary);
      const absentMs = sinceMs === undefined ? 0 : clock.nowMs() - sinceMs;
      return { secondary, acknowledged: positions.get(secondary), absentMs };
    });
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#wakers.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, lookMs);
      this.#wakers.add(wake);
    });
  }
}
