// The active node of a cluster whose members run different releases. Its decisions are the real ones; its log is an array.
import type { ConfRefusalReason, DriverStatus, NodeId, PeerStatus, ProposalOutcome } from '@transitd/raft-core';
import { SimRandom } from '@transitd/raft-sim';
import { type CommitResult, type LevelRange, type Store, StoreError, supportedLevels } from '@transitd/storage-fsm';
import { Admissions } from '../../src/join/admission.ts';
import { FeatureLevelControl } from '../../src/maintenance/feature-level-control.ts';
import { updateMemberEntries } from '../../src/maintenance/member-entries.ts';
import { RaftLevels } from '../../src/maintenance/raft-levels.ts';
import { SigningAuthority } from '../../src/maintenance/signing-authority.ts';
import { authorityRecord } from '../../src/membership/authority.ts';
import { ConfigurationChanges } from '../../src/membership/configuration-changes.ts';
import { initialLevels, supportsLevel } from '../../src/membership/member-levels.ts';
import {
  decodeMembership,
  encodeMembership,
  type Member,
  type Membership,
  memberRemoved,
} from '../../src/membership/membership.ts';
import { clusterId, type TestCluster } from '../credentials.ts';

/** A rule that the code under test must keep, left out on purpose. */
export type PlantedFault = 'joiner judged once' | 'raise beside changes' | 'only heard members count';

type Entry = { readonly raise: number } | { readonly context: Uint8Array };

interface Pending {
  readonly entry: Entry;
  /** Members whose release is not the one that they announced last: they end if they do not support the level of this entry. */
  readonly excused: Set<NodeId>;
  readonly settle: (outcome: 'applied' | 'unknown') => void;
}

/** Requests to join that were made before the simulation, because keys take long to make. */
export type JoinRequests = ReadonlyMap<NodeId, string>;

const ranges: readonly LevelRange[] = [initialLevels, supportedLevels, { oldest: 1, newest: 3 }, { oldest: 2, newest: 3 }];
const flush = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const memberOf = (id: NodeId, levels: LevelRange): Member => ({
  id,
  name: `n${id}`,
  apiAddress: `http://10.0.0.${id}:8200`,
  clusterAddress: `10.0.0.${id}:8201`,
  certificate: String(id).padStart(64, '0'),
  nonVoter: false,
  levels,
});

/** One term of an active node. */
class Term {
  isOver = false;
  readonly heard = new Map<NodeId, LevelRange>();
  readonly control: FeatureLevelControl;
  readonly changes: ConfigurationChanges;

  constructor(world: LevelWorld, leader: NodeId, fault?: PlantedFault) {
    const driver = {
      consensus: () => ({ conf: { context: world.context } }),
      status: () => ({ nodeId: leader }),
      proposeConf: (
        { context }: { readonly context: Uint8Array },
        settle: (outcome: ProposalOutcome<CommitResult, ConfRefusalReason>) => void,
      ): void => {
        if (this.isOver) settle({ kind: 'refused', reason: 'notLeader' } as never);
        else world.append({ context }, (outcome) => settle({ kind: outcome } as never));
      },
    };
    this.changes = new ConfigurationChanges(driver as never, { pause: flush });
    const announced = (id: NodeId): LevelRange | undefined =>
      this.heard.get(id) ?? (fault === 'only heard members count' ? supportedLevels : undefined);
    const storage = {
      driver,
      machine: {
        get featureLevel() {
          return world.level;
        },
      },
      replica: { commit: ({ raise }: { readonly raise: number }) => this.#commit(world, raise) },
    } as never;
    const between: Pick<ConfigurationChanges, 'between'> = { between: (task) => task() };
    const report = (id: NodeId) => {
      const levels = announced(id);
      return levels && ({ levels } as never);
    };
    this.control = new FeatureLevelControl({
      levels: new RaftLevels(storage, fault === 'raise beside changes' ? between : this.changes, { report }),
      config: { node_id: `n${leader}`, feature_level_raise_after: 0 },
      log: { info: () => undefined } as never,
    });
  }

  #commit(world: LevelWorld, raise: number): Promise<{ readonly index: number }> {
    return new Promise((resolve, reject) => {
      if (this.isOver) return reject(new StoreError('not_leader', 'this node is not the leader'));
      world.append({ raise }, (outcome) =>
        outcome === 'applied' ? resolve({ index: 1 }) : reject(new StoreError('outcome_unknown', 'another node leads')),
      );
    });
  }
}

export class LevelWorld {
  readonly random: SimRandom;
  /** Counts of what happened, so that a test can see that a run reached it. */
  readonly seen = { raised: 0, admitted: 0, refusedJoins: 0, refusedRaises: 0, terms: 0 };
  level = 1;
  /** The configuration in force: a change counts as soon as it is in the log. */
  context: Uint8Array;
  violation: string | undefined;
  readonly #authority: TestCluster['authority'];
  readonly #requests: JoinRequests;
  readonly #fault: PlantedFault | undefined;
  readonly #releases = new Map<NodeId, LevelRange>();
  #committed: Uint8Array;
  #pending: Pending[] = [];
  #term: Term;
  #leader: NodeId = 1;
  /** Members that went back to an earlier release too late to be heard, and ended at the raise. */
  readonly #ended = new Set<NodeId>();
  /** Joins whose proofs are being checked: each continues when it is released. */
  #joins: (() => void)[] = [];
  #nextId: NodeId = 4;

  constructor(seed: number, authority: TestCluster['authority'], requests: JoinRequests, fault?: PlantedFault) {
    this.random = new SimRandom(seed);
    this.#authority = authority;
    this.#requests = requests;
    this.#fault = fault;
    for (const id of [1, 2, 3]) this.#releases.set(id, id === 1 ? supportedLevels : this.#anyRelease());
    const members = [...this.#releases].map(([id, levels]) => memberOf(id, levels));
    this.context = encodeMembership({ members, removed: [] });
    this.#committed = this.context;
    this.#term = new Term(this, 1, fault);
  }

  get #members(): Membership['members'] {
    return decodeMembership(this.context).members;
  }

  append(entry: Entry, settle: Pending['settle']): void {
    if ('context' in entry) this.context = entry.context;
    const words = new Map(this.#members.map(({ id, levels }) => [id, this.#term.heard.get(id) ?? levels]));
    const excused = [...words].filter(([id, word]) => JSON.stringify(word) !== JSON.stringify(this.#releases.get(id)));
    this.#pending.push({ entry, settle, excused: new Set(excused.map(([id]) => id)) });
  }

  /** Plays one event, and checks the state after it. */
  async step(): Promise<void> {
    const often = ['heartbeat', 'heartbeat', 'join', 'proved', 'commit'];
    const events = [...often, ...often, ...often, 'entries', 'release', 'raise', 'raise', 'remove', 'term'];
    await this.#play(this.random.pick(events));
    await flush();
  }

  /** Every member is upgraded and heard. Returns whether the level then rises to the newest of the leader. */
  async settles(): Promise<boolean> {
    while (this.#joins.length > 0 || this.#pending.length > 0) {
      this.#joins.shift()?.();
      await flush();
      this.#commitNext();
      await flush();
    }
    for (const { id } of this.#members) {
      this.#releases.set(id, supportedLevels);
      this.#ended.delete(id);
      this.#term.heard.set(id, supportedLevels);
    }
    const raised = this.#term.control.raise();
    await flush();
    this.#commitNext();
    return (await raised) === supportedLevels.newest && this.#term.control.status.waitsFor.length === 0;
  }

  async #play(event: string): Promise<void> {
    const { id } = this.random.pick(this.#members);
    switch (event) {
      case 'heartbeat':
        return void this.#term.heard.set(id, this.#releases.get(id) ?? initialLevels);
      case 'entries':
        return void updateMemberEntries(this.#term.changes, { report: (one) => this.#report(one) }).catch(() => undefined);
      case 'release':
        return this.#changeRelease(id);
      case 'raise':
        return void this.#term.control.raise(this.random.chance(0.5) ? 2 : undefined).catch(() => (this.seen.refusedRaises += 1));
      case 'join':
        return this.#join();
      case 'proved':
        return this.#joins.splice(this.random.below(this.#joins.length + 1), 1)[0]?.();
      case 'commit':
        return this.#commitNext();
      case 'remove':
        if (id !== this.#leader)
          void this.#term.changes.make((_conf, before) => ({ membership: memberRemoved(before, id) })).catch(() => undefined);
        return;
      case 'term':
        return this.#newTerm();
    }
  }

  #anyRelease(): LevelRange {
    return this.random.pick(ranges.filter((range) => supportsLevel(range, this.level)));
  }

  #report(id: NodeId) {
    const levels = this.#term.heard.get(id);
    return levels && { ...memberOf(id, levels), levels };
  }

  /** A node of a release that does not support the level of the cluster does not start. */
  #changeRelease(id: NodeId): void {
    if (id === this.#leader) return;
    this.#releases.set(id, this.#anyRelease());
    this.#ended.delete(id);
    for (const { excused } of this.#pending) excused.add(id);
  }

  async #join(): Promise<void> {
    const id = this.#nextId;
    const request = this.#requests.get(id);
    if (request === undefined) return;
    this.#nextId += 1;
    const levels = this.random.chance(0.5) ? initialLevels : this.random.pick(ranges);
    const { changes } = this.#term;
    const { promise: proved, resolve: release } = Promise.withResolvers<void>();
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const { value } = authorityRecord(this.#authority);
    const first = this.level;
    const store = { get: async () => ({ value: Buffer.from(value ?? []), revision: 1 }) } as unknown as Store;
    const level = (): number => (this.#fault === 'joiner judged once' ? first : this.level);
    const admissions = new Admissions({
      config: { node_id: `n${this.#leader}` },
      storage: {
        driver: { status: () => ({ nodeId: this.#leader }) as DriverStatus, peers: (): readonly PeerStatus[] => [] },
        machine: {
          get featureLevel() {
            return level();
          },
        },
      },
      changes: {
        make: (decide: Parameters<typeof changes.make>[0]) => {
          reach();
          return proved.then(() => changes.make((conf, before) => this.#admitted(id, levels, decide(conf, before))));
        },
      },
      authority: new SigningAuthority(store, clusterId, {
        committedAuthority: undefined,
        requireIdentity: () => {
          throw new Error('nothing is restored');
        },
      }),
      ownEntry: { update: async () => undefined },
    });
    const admission = admissions.admit({ ...memberOf(id, levels), levels, request });
    const ended = admission.then(
      () => (this.seen.admitted += 1),
      () => (this.seen.refusedJoins += 1),
    );
    await Promise.race([reached, ended]);
    this.#joins.push(release);
  }

  #admitted<T>(id: NodeId, levels: LevelRange, change: T): T {
    this.#releases.set(id, levels);
    return change;
  }

  #commitNext(): void {
    const next = this.#pending.shift();
    if (next === undefined) return;
    this.#apply(next);
    next.settle('applied');
  }

  #apply({ entry, excused }: Pending): void {
    if ('raise' in entry) {
      this.level = entry.raise;
      this.seen.raised += 1;
    } else this.#committed = entry.context;
    for (const { id } of decodeMembership(this.#committed).members) {
      const levels = this.#releases.get(id) ?? initialLevels;
      if (supportsLevel(levels, this.level) || this.#ended.has(id)) continue;
      if ('raise' in entry && excused.has(id)) {
        this.#ended.add(id);
        continue;
      }
      this.violation ??= `node ${id} supports ${levels.oldest} to ${levels.newest}, and the cluster is at level ${this.level}`;
    }
  }

  /** Another node leads. Some of the entries that were not committed are in its log, and it is active after it has applied them. */
  #newTerm(): void {
    const ended = this.#term;
    ended.isOver = true;
    const kept = this.random.below(this.#pending.length + 1);
    for (const [index, pending] of this.#pending.splice(0).entries()) {
      if (index < kept) this.#apply(pending);
      pending.settle('unknown');
    }
    this.context = this.#committed;
    const heirs = this.#members.filter(({ id }) => JSON.stringify(this.#releases.get(id)) === JSON.stringify(supportedLevels));
    this.#leader = heirs.length > 0 ? this.random.pick(heirs).id : this.#leader;
    this.#term = new Term(this, this.#leader, this.#fault);
    this.seen.terms += 1;
  }
}
