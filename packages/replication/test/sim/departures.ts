import type { SimClock, SimRandom } from '@transitd/raft-core/sim';
import type { ReplicationState, Write } from '@transitd/storage-fsm';
import type { PromotionDecision } from '../../src/index.ts';
import { type ActiveNode, keyPaths, keyringPath, type Site } from './site.ts';

/** The facts of a decision whether a cluster may accept writes. */
export interface DecisionRequest {
  readonly site: Site;
  readonly active: ActiveNode;
  readonly state: ReplicationState;
  readonly force: boolean;
}

export interface DeparturesParts {
  readonly clock: SimClock;
  readonly random: SimRandom;
  readonly sites: readonly Site[];
  readonly decide: (request: DecisionRequest) => PromotionDecision;
  /** Returns the write that adds a key to the keyring. */
  readonly newKey: (site: Site) => Write;
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

  leave(site: Site): void {
    const { clock, random, sites, decide, newKey, comeBack } = this.#parts;
    const { active, state } = site;
    // The operator leaves the set to a cluster that has its state.
    const isSet = sites.some((other) => ['primary', 'demoted', 'superseded'].includes(other.state?.role ?? ''));
    if (active === undefined || state?.role !== 'secondary' || !isSet || random.chance(0.5)) return;
    const decision = decide({ ...{ site, active, state }, force: true });
    if (decision.kind !== 'promote') return;
    const replication = { kind: 'leave', from: decision.from, writes: [newKey(site)] } as const;
    site.propose({ conditions: [], writes: [], replication }, (result) => {
      if (result !== 'committed') return;
      this.counts.left += 1;
      if (random.chance(0.5)) for (const other of sites) other.registered.delete(site.name);
      clock.after(random.between(50, 600), () => comeBack(site, random.pick(sites)));
    });
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
