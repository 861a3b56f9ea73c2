import { setImmediate } from 'node:timers/promises';
import { clockRateError } from '@transitd/raft-core';
import { SimClock, SimRandom } from '@transitd/raft-sim';
import { cursorOf, featureLevels, type ReplicationStep, type Transaction } from '@transitd/storage-fsm';
import { localPrefixes } from '../../src/scope.ts';
import { Departures } from './departures.ts';
import { KeyMaterial } from './key-material.ts';
import { Links } from './links.ts';
import { holds, Oracle } from './oracle.ts';
import { type MadePromotion, type PromotionRequest, Promotions } from './promotions.ts';
import { Restores } from './restores.ts';
import { heartbeatMs, Sessions } from './sessions.ts';
import { keyPaths, keyringPath, localPath, otherLocalPath, type Result, Site } from './site.ts';

export interface WorldOptions {
  readonly seed: number;
  /** Where the state machines keep their databases. */
  readonly folder: string;
  /** Length of the part with faults. */
  readonly faultyMs: number;
}

const isolation = 1_000_000;

/** Two or three clusters, clients, an operator and faults; everything from one seed. */
export class World {
  readonly clock = new SimClock();
  readonly oracle = new Oracle();
  readonly sessions: Sessions;
  readonly counts = {
    acknowledged: 0,
    conflicts: 0,
    handovers: 0,
  };
  readonly #random: SimRandom;
  readonly #links: Links;
  readonly #sites: readonly Site[];
  /** That of the set. */
  readonly #fenceMs: number | undefined;
  readonly material: KeyMaterial;
  readonly restores: Restores;
  readonly promotions: Promotions;
  readonly departures: Departures;
  readonly #options: WorldOptions;
  readonly #failures: unknown[] = [];
  /** Positions at which a primary stopped for good, by epoch: nothing is acknowledged after them. */
  readonly #ends = new Map<string, number>();
  #serial = 0;
  #isFaulty = true;
  #isWriting = true;

  private constructor(
    options: WorldOptions,
    random: SimRandom,
    parts: { sites: Site[]; links: Links; clock: SimClock; oracle: Oracle },
  ) {
    this.#options = options;
    this.#random = random;
    this.#links = parts.links;
    this.#sites = parts.sites;
    this.clock = parts.clock;
    this.oracle = parts.oracle;
    const shared = { clock: this.clock, random, sites: parts.sites, failures: this.#failures };
    this.sessions = new Sessions({ ...shared, links: parts.links });
    this.material = new KeyMaterial(random, this.sessions, parts.sites);
    this.promotions = new Promotions({
      ...{ ...shared, oracle: this.oracle, newId: this.#id },
      newKey: (site, epoch) => this.#newKey(site, epoch),
      onMade: (made) => this.#promoted(made),
    });
    this.departures = new Departures({
      ...{ ...shared, promotions: this.promotions },
      comeBack: (site, to) => this.#return(site, to),
    });
    this.restores = new Restores({ clock: this.clock, random });
    this.#fenceMs = parts.sites.length === 2 && random.chance(0.7) ? 120 : undefined;
  }

  static async create(options: WorldOptions): Promise<World> {
    const random = new SimRandom(options.seed);
    const [clock, oracle] = [new SimClock(), new Oracle()];
    const isRough = random.chance(0.5);
    const delayMs = random.between(1, 20);
    const faults = { loss: isRough ? 0.02 : 0, delayMinMs: delayMs, delayMaxMs: isRough ? delayMs + 5 : delayMs };
    const links = new Links({ clock, random, faults });
    const names = random.chance(0.5) ? ['a', 'b'] : ['a', 'b', 'c'];
    const sites: Site[] = [];
    const rates = new SimRandom(options.seed + 2 ** 31); // a stream of its own, so that it changes no other draw
    for (const name of names) {
      const clockRate = 1 + rates.pick([-clockRateError, clockRateError]);
      sites.push(await Site.open(options.folder, { name, clock, clockRate, random, oracle }));
    }
    return new World(options, random, { sites, links, clock, oracle });
  }

  /** Plays the whole run. @throws Violation when a rule is broken */
  async play(): Promise<void> {
    this.#every(heartbeatMs, () => this.promotions.tick(this.#sites));
    // Most nodes were active once before there were secondaries.
    for (let round = 0; round < 4; round++) {
      await this.#run(100);
      for (const site of this.#sites) site.elect();
    }
    await this.#run(50);
    for (const site of this.#sites) site.propose({ raise: featureLevels.initial });
    await this.#run(20);
    const set = this.#id();
    const id = this.#id();
    this.#step(this.#site('a'), { kind: 'establish', set, id, local: localPrefixes, fenceMs: this.#fenceMs });
    this.#site('a').propose({ conditions: [], writes: [{ path: keyringPath, value: Buffer.from(`${id}:first`) }] });
    await this.#run(100);
    for (const site of this.#sites) {
      const key = site.name === 'a' ? 'first' : 'own';
      const writes = [
        { path: localPath, value: Buffer.from(`${site.name}|${key}`) },
        { path: otherLocalPath, value: Buffer.from(site.name) },
      ];
      site.propose({ conditions: [], writes });
      if (site.name !== 'a') this.#step(site, { kind: 'attach', set, local: localPrefixes, fenceMs: this.#fenceMs });
      if (site.name !== 'a') site.target = 'a';
    }
    this.#every(heartbeatMs, () => this.sessions.tick());
    this.#every(4, () => this.#write());
    this.#every(20, () => {
      for (const site of this.#sites) if (this.#random.chance(0.2)) site.writeNote();
      if (this.#isWriting) this.departures.write();
    });
    this.#every(15, () => {
      for (const site of this.#sites) if (site.accepts()) this.material.use(site);
    });
    this.#every(50, () => {
      for (const site of this.#sites) if (this.#random.chance(0.3)) site.disk.push(site.flush());
    });
    // An operator promotes a cluster that has only a part of what its primary sends.
    this.sessions.onIncomplete = (site) => {
      if (!this.#isFaulty || !this.#random.chance(0.4)) return;
      const force = this.#random.chance(0.9);
      this.#promoteLater(site, { force, afterMs: this.#random.pick([0, this.#random.below(60)]) });
    };
    this.#every(60, () => this.#isFaulty && this.#disturb());
    await this.#run(this.#options.faultyMs);
    await this.#settle();
  }

  async close(): Promise<void> {
    for (const { disk, machine } of this.#sites) {
      await Promise.allSettled(disk.splice(0));
      await machine.close();
    }
  }

  #site = (name: string): Site => {
    const site = this.#sites.find((one) => one.name === name);
    if (site === undefined) throw new RangeError('no such site');
    return site;
  };

  #id = (): string => Array.from({ length: 4 }, () => this.#random.uint32().toString(16).padStart(8, '0')).join('');
  #every = (ms: number, task: () => void): void => void this.clock.every(ms, task);
  #step = (site: Site, replication: ReplicationStep, done?: (result: Result) => void): void =>
    site.propose({ replication }, done);

  async #run(ms: number): Promise<void> {
    const end = this.clock.now() + ms;
    this.clock.after(ms, () => undefined);
    for (let events = 0; this.clock.now() < end && this.clock.step(); events++) {
      holds('time passes', events < 200_000, () => ({ nowMs: this.clock.now() }));
      await this.#quiet();
      const accepting = this.#fenceMs === undefined ? [] : this.#sites.filter((site) => site.accepts());
      holds('with a fence never two clusters accept writes', accepting.length < 2, () =>
        accepting.map(({ name, state, active }) => ({ name, state, fence: active?.node.fence.status })),
      );
    }
  }

  /** Lets everything end that does not wait for another event. */
  async #quiet(): Promise<void> {
    await setImmediate();
    const [failure] = this.#failures;
    if (failure !== undefined) throw failure;
    for (const { disk } of this.#sites)
      while (disk.length > 0) {
        await disk.shift();
        await setImmediate();
      }
  }

  #write(): void {
    const site = this.#random.pick(this.#sites);
    const epoch = site.state?.epochs.at(-1);
    const path = this.#random.pick(keyPaths);
    const keyring = site.keyring();
    if (!this.#isWriting || !site.accepts() || epoch === undefined || keyring === undefined) return;
    if (this.#random.chance(0.006)) {
      this.restores.begin(site);
      return;
    }
    this.#serial += 1;
    if (this.#random.chance(0.05)) {
      this.material.make(site, this.#serial);
      return;
    }
    const isSame = { path: keyringPath, revision: keyring.revision };
    if (this.#random.chance(0.02)) {
      site.propose({ conditions: [isSame], writes: [this.#newKey(site, epoch.id)] });
      return;
    }
    const value = `${epoch.id}:${this.#serial}:${keyring.keys.at(-1)}`;
    const isDeletion = this.#random.chance(0.15);
    const revision = this.#random.chance(0.9) ? (site.machine.getSync(path)?.revision ?? 0) : isolation;
    const isConditional = this.#random.chance(0.5);
    const { active } = site;
    const transaction: Transaction = {
      conditions: [isSame, ...(isConditional ? [{ path, revision }] : [])],
      writes: [{ path, value: isDeletion ? null : Buffer.from(value) }],
    };
    site.propose(transaction, (result, index) => {
      if (result === 'conflict') this.counts.conflicts += 1;
      if (result !== 'committed' || site.active !== active || !site.accepts()) return;
      this.#acknowledge({ path, value, epoch: epoch.id, index });
    });
  }

  #acknowledge(write: { path: string; value: string; epoch: string; index: number }): void {
    this.counts.acknowledged += 1;
    this.oracle.acknowledged.push(write);
    const end = this.#ends.get(write.epoch);
    holds(
      'after a handover without loss the former primary acknowledges nothing',
      end === undefined || write.index <= end,
      () => ({
        ...{ end, write },
      }),
    );
  }

  /** Returns the write that adds a key to the keyring. */
  #newKey(site: Site, epoch: string): { readonly path: string; readonly value: Buffer } {
    this.#serial += 1;
    const keys = [...(site.keyring()?.keys ?? []), `key-${this.#serial}`];
    return { path: keyringPath, value: Buffer.from(`${epoch}:${keys}`) };
  }

  #disturb(): void {
    const random = this.#random;
    const site = random.pick(this.#sites);
    const other = random.pick(this.#sites);
    const actions: readonly (() => void)[] = [
      () => {
        site.elect();
        // The operator asks the next active node at once.
        if (random.chance(0.5)) this.#promoteLater(site, { force: true, afterMs: random.between(20, 80) });
      },
      () => this.#outage(site),
      () => {
        site.suspend(random.between(20, 400));
        // The machines of the other cluster run, and its operator acts.
        if (random.chance(0.5)) this.#promoteLater(other, { force: true, afterMs: 0 });
      },
      () => {
        const primary = this.#sites.find(({ name }) => name === site.target);
        if (primary === undefined || site.state?.role !== 'secondary') return;
        this.#links.stall(site, primary, random.between(20, 300));
        if (random.chance(0.7)) this.#promoteLater(site, { force: true, afterMs: random.below(100) });
      },
      () => site !== other && this.#links.cut(site, other),
      () => this.#links.heal(),
      () => this.#promote(site, { force: random.chance(0.5), untilMs: this.clock.now() + 300 }),
      () => this.#handOver(site, other),
      () => this.#return(site, other),
      () => void this.departures.leave(site),
      () => {
        if (site !== other && site.state?.role === 'secondary') site.target = other.name;
      },
    ];
    random.pick(actions)();
  }

  #outage(site: Site): void {
    site.isUp = false;
    site.elect();
    this.clock.after(this.#random.between(20, 300), () => {
      site.isUp = true;
      site.elect();
    });
  }

  #handOver(from: Site, to: Site): void {
    const epoch = from.state?.epochs.at(-1);
    if (from === to || epoch === undefined || from.active === undefined || from.state?.role !== 'primary') return;
    this.counts.handovers += 1;
    this.#step(from, { kind: 'demote', from: epoch });
    this.#promote(to, { force: false, untilMs: this.clock.now() + 600 });
    // The operator may also change their mind, while the other cluster already knows that this one has stopped.
    if (this.#random.chance(0.3)) this.#promote(from, { force: this.#random.chance(0.5), untilMs: this.clock.now() + 300 });
    this.clock.after(this.#random.between(100, 800), () => this.#return(from, to));
  }

  /** A former primary, or a cluster that has left the set, becomes a secondary again. */
  #return(site: Site, to: Site): void {
    const { state } = site;
    if (state === undefined || site === to) return;
    // Only a primary issues the token that a cluster outside of the set needs.
    const hasToken = state.role === 'disabled' && to.state?.role === 'primary';
    if (!hasToken && state.role !== 'superseded' && state.role !== 'demoted') return;
    this.#step(site, { kind: 'attach', set: state.set, local: localPrefixes, fenceMs: this.#fenceMs });
    site.target = to.name;
  }

  #promoteLater(site: Site, { force, afterMs }: { readonly force: boolean; readonly afterMs: number }): void {
    this.clock.after(afterMs, () => this.#promote(site, { force, untilMs: this.clock.now() + 400 }));
  }

  #promote = (site: Site, request: PromotionRequest): void => void this.promotions.ask(site, request);

  #promoted(made: MadePromotion): void {
    this.material.promoted(made);
    const {
      site,
      state,
      decision: { from, lossless },
    } = made;
    // The operator lets other secondaries follow the new primary, which may be ahead of them.
    for (const other of this.#sites)
      if (other !== site && other.state?.role === 'secondary' && this.#random.chance(0.5)) other.target = site.name;
    if (lossless && state.role === 'secondary') this.#ends.set(from.id, from.index);
  }

  /** Ends all faults; the operator leaves one primary and attaches the others. Then all sites must become equal. */
  async #settle(): Promise<void> {
    this.#isFaulty = false;
    this.#links.heal();
    this.#links.isHealthy = true;
    for (const site of this.#sites) {
      if (!site.isUp || site.active === undefined) {
        site.isUp = true;
        site.elect();
      }
    }
    await this.#run(1_000); // operators who asked for a promotion before have an answer then
    for (const { name, state, target } of this.#sites) {
      const former = this.#sites.find((other) => other.name === target);
      const areTwo = state?.role === 'primary' && former?.state?.role === 'primary';
      holds('of a primary and its former primary one goes on serving', !areTwo, () => ({ name, state, former: former?.state }));
    }
    this.#isWriting = false;
    for (let round = 0; round < 12 && !this.#isConverged(); round++) {
      this.#repair();
      await this.#run(500);
    }
    holds('when the faults end, all clusters become equal and the primary accepts writes', this.#isConverged(), () =>
      this.#sites.map((site) => ({ name: site.name, target: site.target, state: site.state, position: site.position })),
    );
  }

  #repair(): void {
    const ranked = this.#sites.toSorted((a, b) => rankOf(b) - rankOf(a));
    const primaries = this.#sites.filter(({ state }) => state?.role === 'primary');
    const [best] = primaries.length > 0 ? primaries.toSorted((a, b) => rankOf(b) - rankOf(a)) : ranked;
    if (best === undefined) return;
    if (best.state?.role !== 'primary') this.#promote(best, { force: true, untilMs: this.clock.now() + 400, isRepair: true });
    for (const site of this.#sites) {
      if (site === best) continue;
      this.#return(site, best);
      site.target = best.name;
      // The operator removes registrations of clusters that do not follow this one.
      if (best.state?.role === 'primary' && site.state?.role !== 'secondary' && site.state?.role !== 'primary')
        best.revoke(site.name);
    }
  }

  #isConverged(): boolean {
    const primaries = this.#sites.filter(({ state }) => state?.role === 'primary');
    const [primary] = primaries;
    if (primary === undefined || primaries.length !== 1 || !primary.accepts()) return false;
    const image = primary.image();
    return this.#sites.every(
      (site) =>
        site === primary ||
        (site.state?.role === 'secondary' &&
          this.oracle.same(image, site.image()) &&
          cursorOf(site.state)?.id === primary.state?.epochs.at(-1)?.id),
    );
  }
}

const rankOf = ({ state }: Site): number => (state?.epochs.at(-1)?.number ?? 0) * isolation + (state?.index ?? 0);
