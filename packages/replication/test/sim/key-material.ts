import type { SimRandom } from '@transitd/raft-sim';
import { type AcknowledgeSettings, acknowledgementOf } from '../../src/roles/acknowledgement.ts';
import { holds } from './oracle.ts';
import type { MadePromotion } from './promotions.ts';
import type { Sessions } from './sessions.ts';
import { keyringPath, type Site, unconfirmedPath, versionPath, versionsMax } from './site.ts';

/** Material that has been used: ciphertexts under it exist outside of the clusters. */
interface Used {
  /** Name of the cluster that has used it, as a primary. */
  readonly by: string;
  readonly epoch: string;
  readonly index: number;
  /** Ids of all epochs of the primary at that time. */
  readonly epochs: ReadonlySet<string>;
  /**
   * The secondaries that the primary counted at that time, each with its number of attachments. A secondary that has left the set and come
   * back may have an older state, and confirms the material again.
   */
  readonly secondaries: ReadonlyMap<string, number>;
}

const settings: AcknowledgeSettings = { timeoutMs: 100, onTimeout: 'refuse' };

/**
 * Key material of clusters that acknowledge it: it is stored with a mark, and used once the mark is removed, which any active node does
 * when all secondaries have the material.
 */
export class KeyMaterial {
  readonly counts = { made: 0, used: 0, heldBack: 0 };
  readonly #random: SimRandom;
  readonly #sessions: Sessions;
  readonly #sites: readonly Site[];
  readonly #used: Used[] = [];

  constructor(random: SimRandom, sessions: Sessions, sites: readonly Site[]) {
    this.#random = random;
    this.#sessions = sessions;
    this.#sites = sites;
  }

  /** Makes new material on a primary, which replaces that of the same number. */
  make(site: Site, serial: number): void {
    const keyring = site.keyring();
    const epoch = site.state?.epochs.at(-1)?.id;
    if (keyring === undefined || epoch === undefined) return;
    const number = this.#random.below(versionsMax);
    const value = Buffer.from(`${epoch}:${serial}:${keyring.keys.at(-1)}`);
    const conditions = [
      { path: keyringPath, revision: keyring.revision },
      { path: unconfirmedPath(number), revision: 0 },
    ];
    const writes = [versionPath(number), unconfirmedPath(number)].map((path) => ({ path, value }));
    site.propose({ conditions, writes }, (result) => {
      if (result === 'committed') this.counts.made += 1;
    });
  }

  /** Lets material be used that all secondaries of this primary have. */
  use(site: Site): void {
    for (let number = 0; number < versionsMax; number++) {
      const path = unconfirmedPath(number);
      const mark = site.machine.getSync(path);
      if (mark === undefined) continue;
      const decision = acknowledgementOf(mark.revision, this.#sessions.progressOf(site), { settings, waitedMs: 0 });
      if (decision.kind !== 'confirmed') {
        this.counts.heldBack += 1;
        continue;
      }
      const counted = this.#sites.filter(({ name }) => site.registered.has(name));
      const secondaries = new Map(counted.map(({ name, attachments }) => [name, attachments]));
      site.propose({ conditions: [{ path, revision: mark.revision }], writes: [{ path, value: null }] }, (result) => {
        if (result === 'committed' && site.state?.role === 'primary') this.#note(site, mark.revision, secondaries);
      });
    }
  }

  /** A cluster was promoted. */
  promoted({ site, state: { role, epochs }, decision: { from }, force }: MadePromotion): void {
    const { name, attachments, isCounted, target } = site;
    const lacked = this.#used.filter(({ index, ...used }) => index > from.index && epochs.every(({ id }) => used.epochs.has(id)));
    const lost = lacked.find(({ secondaries }) => secondaries.get(name) === attachments);
    holds('a promotion loses no key material that was used', lost === undefined, () => ({ name, from, lost, epochs }));
    // Of a secondary that its primary does not know any more, as one that was revoked, nothing is promised.
    const isKnown = this.#sites.some((other) => other.name === target && other.registered.has(name));
    const isPromised = role === 'secondary' && isKnown && (isCounted || !force);
    const unknown = lacked.find(({ by }) => by === target);
    holds(
      'a secondary that counts lacks no key material that its primary has used',
      !isPromised || unknown === undefined,
      () => ({
        ...{ name, from, unknown, epochs, isCounted, force },
      }),
    );
  }

  #note({ name: by, state }: Site, index: number, secondaries: ReadonlyMap<string, number>): void {
    const ids = state?.epochs.map(({ id }) => id) ?? [];
    const epoch = ids.at(-1);
    if (epoch === undefined) return;
    this.counts.used += 1;
    this.#used.push({ by, epoch, index, epochs: new Set(ids), secondaries });
  }
}
