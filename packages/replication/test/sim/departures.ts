import type { SimClock, SimRandom } from '@transitd/raft-sim';
import type { Promotions } from './promotions.ts';
import { keyPaths, keyringPath, type Site } from './site.ts';

export interface DeparturesParts {
  readonly clock: SimClock;
  readonly random: SimRandom;
  readonly sites: readonly Site[];
  readonly promotions: Promotions;
  /** Makes a cluster a secondary again. */
  readonly comeBack: (site: Site, to: Site) => void;
}

/** Secondaries that leave the set, serve their state as one of their own, and are enabled as secondaries again. */
export class Departures {
  readonly counts = { left: 0 };
  readonly #parts: DeparturesParts;
  #serial = 0;

  constructor(parts: DeparturesParts) {
    this.#parts = parts;
  }

  async leave(site: Site): Promise<void> {
    const { clock, random, sites, promotions, comeBack } = this.#parts;
    // The operator leaves the set to a cluster that has its state.
    const isSet = sites.some((other) => ['primary', 'demoted', 'superseded'].includes(other.state?.role ?? ''));
    if (site.state?.role !== 'secondary' || !isSet || random.chance(0.5)) return;
    if (!(await promotions.leave(site))) return;
    this.counts.left += 1;
    if (random.chance(0.5)) for (const other of sites) other.revoke(site.name);
    clock.after(random.between(50, 600), () => comeBack(site, random.pick(sites)));
  }

  /** Writes on each cluster that has left the set. */
  write(): void {
    const { random, sites } = this.#parts;
    for (const site of sites) {
      const keyring = site.keyring();
      if (site.state?.role !== 'disabled' || keyring === undefined) continue;
      this.#serial += 1;
      const value = Buffer.from(`alone:${this.#serial}:${keyring.keys.at(-1)}`);
      site.propose({
        conditions: [{ path: keyringPath, revision: keyring.revision }],
        writes: [{ path: random.pick(keyPaths), value }],
      });
    }
  }
}
