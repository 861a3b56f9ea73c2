import { join } from 'node:path';
import type { Entry } from '@transitd/raft-core';
import type { SimClock, SimRandom } from '@transitd/raft-sim';
import {
  type Command,
  decodeCommand,
  encodeCommand,
  isLocal,
  KeyValueMachine,
  type ReplicatedRecord,
  type ReplicationState,
  type ReplicationStep,
  type Write,
} from '@transitd/storage-fsm';
import { emptyRegistry, type Registry } from '../../src/registry/registry.ts';
import type { Heard } from '../../src/roles/promotion-control.ts';
import { WriteFence } from '../../src/roles/write-fence.ts';
import { OutcomeLog } from '../../src/stream/outcome-log.ts';
import { holds, type Image, type Oracle } from './oracle.ts';

/** Its value is `epoch id:keys`; the last key encrypts new values. */
export const keyringPath = 'core/keyring';
/** Their values are `epoch id:serial number:key`. */
export const keyPaths = Array.from({ length: 12 }, (_, at) => `transit/key-${at}`);
/** Number of keys whose material secondaries acknowledge. */
export const versionsMax = 3;
/** Key material, and the mark that it may not be used yet; values as those of keys. */
export const versionPath = (number: number): string => `transit/version-${number}`;
export const unconfirmedPath = (number: number): string => `transit/unconfirmed-${number}`;
const versionPaths = Array.from({ length: versionsMax }, (_, at) => [versionPath(at), unconfirmedPath(at)]).flat();
const replicatedPaths = [keyringPath, ...keyPaths, ...versionPaths];
/** Its value is `site|key`. */
export const localPath = 'core/cluster-authority';

/** A local record that the active node creates and deletes now and then; values as those of `localPath`. */
const notePath = 'core/replication/note';
/** A local record that nothing writes again; its value is the name of the site. */
export const otherLocalPath = 'core/autopilot';

/** Returns the keys of a keyring, the newest one last. */
export const keysIn = (keyring: Uint8Array): string[] => Buffer.from(keyring).toString().split(':')[1]?.split(',') ?? [];

/** Returns the key that has encrypted a value. */
const keyOf = (value: Uint8Array): string => Buffer.from(value).toString().split(':')[2] ?? '';

/** Room for about 100 entries, and twice as many while a state is being sent. */
const outcomeLimits = { bytesMax: 40_000, heldBytesMax: 80_000 };

export type Result = 'committed' | 'conflict' | 'unknown';

interface Pending {
  readonly data: Buffer;
  readonly done: (result: Result, index: number) => void;
}

export interface SiteParts {
  readonly name: string;
  readonly clock: SimClock;
  /** Milliseconds that the monotonic clock of the cluster counts in one of the simulated world. */
  readonly clockRate: number;
  readonly random: SimRandom;
  readonly oracle: Oracle;
  readonly machine: KeyValueMachine;
}

/** The knowledge of one node of a site. */
export interface SiteNode {
  readonly fence: WriteFence;
  readonly registry: KnownRegistry;
  readonly secondary: {
    isPromoting: boolean;
    lastHeard: Heard | undefined;
    answeredMs: number | undefined;
  };
}

/** The active node of a site in one term. */
export interface ActiveNode {
  readonly term: number;
  readonly node: SiteNode;
}

/** The names of the secondaries as one node has read them. */
class KnownRegistry {
  readonly #registered: ReadonlySet<string>;
  readonly #delay: () => Promise<void>;
  #names: readonly string[] | undefined;

  constructor(registered: ReadonlySet<string>, delay: () => Promise<void>) {
    this.#registered = registered;
    this.#delay = delay;
  }

  get current(): Registry {
    const registered = { cluster: '', certificate: '', follows: true };
    return { ...emptyRegistry, registrations: (this.#names ?? []).map((secondary) => ({ secondary, ...registered })) };
  }

  get isRead(): boolean {
    return this.#names !== undefined;
  }

  read(): void {
    this.#names = [...this.#registered];
  }

  async refresh(): Promise<void> {
    await this.#delay();
    this.read();
  }
}

/**
 * One cluster: a log, the real state machine, and an active node that may be replaced at any time. Consensus itself is simulated elsewhere;
 * here it is its promise: entries of one leader are applied in order, and of those that were in flight when the leader changed, the first
 * ones are applied and the others never.
 */
export class Site {
  readonly name: string;
  readonly machine: KeyValueMachine;
  active: ActiveNode | undefined;
  outcomes = new OutcomeLog(outcomeLimits);
  isUp = true;
  /** As the credential for the present primary says: that one waits for this cluster, which has what was used before. */
  isCounted = false;
  /** How often this cluster became a secondary without a state. */
  attachments = 0;
  /** Work with the disk that ends before the next event. */
  readonly disk: Promise<void>[] = [];
  readonly #parts: SiteParts;
  #target: string | undefined;
  readonly #registered = new Set<string>();
  readonly #nodes: SiteNode[] = [];
  #index = 0;
  #term = 0;
  #pending: Pending[] = [];
  #hasOwn = false;
  /** When the machines of this cluster were suspended, by the clock of the world. */
  #suspendedAt: number | undefined;
  #suspendedMs = 0;
  /** When the clock of this cluster last stood still, by that clock. */
  #jumpedMs = Number.NEGATIVE_INFINITY;
  /** Deliveries that wait until the machines run again. */
  #missed: (() => void)[] = [];

  constructor(parts: SiteParts) {
    this.#parts = parts;
    this.name = parts.name;
    this.machine = parts.machine;
    this.machine.observe(this.outcomes);
    this.#nodes.push(this.#newNode(), this.#newNode(), this.#newNode());
    this.elect();
  }

  static async open(folder: string, parts: Omit<SiteParts, 'machine'>): Promise<Site> {
    return new Site({ ...parts, machine: await KeyValueMachine.open({ directory: join(folder, parts.name), base: 0 }) });
  }

  /** The site that this one follows as a secondary. It has a credential for that site only, which says whether it counts there. */
  get target(): string | undefined {
    return this.#target;
  }

  set target(name: string) {
    if (name !== this.#target) this.isCounted = false;
    this.#target = name;
  }

  /** The time by the clock of this cluster. */
  nowMs(): number {
    const { clock, clockRate } = this.#parts;
    return ((this.#suspendedAt ?? clock.now()) - this.#suspendedMs) * clockRate;
  }

  get isSuspended(): boolean {
    return this.#suspendedAt !== undefined;
  }

  /** Suspends the machines of this cluster for a while. Their monotonic clock stands still, and they notice that afterwards. */
  suspend(ms: number): void {
    if (this.isSuspended) return;
    const { clock } = this.#parts;
    const beganAt = clock.now();
    this.#suspendedAt = beganAt;
    clock.after(ms, () => {
      this.#suspendedAt = undefined;
      this.#suspendedMs += clock.now() - beganAt;
      this.#jumpedMs = this.nowMs();
      for (const arrived of this.#missed.splice(0)) arrived();
    });
  }

  /** Runs the task as soon as the machines of this cluster run. */
  whenAwake(task: () => void): void {
    if (this.isSuspended) this.#missed.push(task);
    else task();
  }

  get state(): ReplicationState | undefined {
    return this.machine.replication;
  }

  /** The newest position: on a primary that of its last entry. */
  get position(): number {
    const { state } = this;
    return state === undefined ? 0 : state.role === 'primary' ? this.#index + state.offset : state.index;
  }

  /** Resolves after a time by the clock of this cluster, when its machines run. */
  delay(ms: number): Promise<void> {
    const { clock, clockRate } = this.#parts;
    return new Promise((resolve) => clock.after(ms / clockRate, () => this.whenAwake(resolve)));
  }

  /** Hands a transaction to the log. The result is `unknown` if the active node is replaced. */
  propose(command: Command, done: Pending['done'] = () => undefined): void {
    if (this.active === undefined) {
      done('unknown', 0);
      return;
    }
    this.#pending.push({ data: encodeCommand(command), done });
    const { term } = this.active;
    this.#parts.clock.after(this.#parts.random.between(1, 6), () => {
      if (term !== this.active?.term) return;
      const next = this.#pending.shift();
      if (next !== undefined) next.done(...this.#apply(next.data));
    });
  }

  /** Replaces the active node: some of the entries in flight are applied, the others are lost, and nobody learns which. */
  elect(): void {
    const { random, clock } = this.#parts;
    this.active = undefined;
    const kept = random.below(this.#pending.length + 1);
    const pending = this.#pending.splice(0);
    for (const { data } of pending.slice(0, kept)) this.#apply(data);
    for (const { done } of pending) done('unknown', 0);
    // The new active node is one that has just started, or a standby that has seen all entries.
    if (random.chance(0.3)) {
      this.outcomes = new OutcomeLog(outcomeLimits);
      this.machine.observe(this.outcomes);
    }
    if (!this.isUp) return;
    this.#term += 1;
    const term = this.#term;
    clock.after(random.between(5, 40), () => {
      if (term !== this.#term || !this.isUp) return;
      this.#apply(undefined);
      if (random.chance(0.2)) this.#nodes.splice(random.below(this.#nodes.length), 1, this.#newNode());
      const node = random.pick(this.#nodes);
      this.active = { term, node };
      void node.fence.activated(term);
    });
  }

  /** Returns the keyring and its revision. */
  keyring(): { readonly keys: readonly string[]; readonly revision: number } | undefined {
    const record = this.machine.getSync(keyringPath);
    return record && { keys: keysIn(record.value), revision: record.revision };
  }

  /** Returns the local records that are encrypted, under the newest key of a keyring, with their revisions. */
  localRecords(newest: string | undefined): ReplicatedRecord[] {
    return [localPath, notePath].flatMap((path) => {
      const record = this.machine.getSync(path);
      return record === undefined ? [] : [{ path, value: Buffer.from(`${this.name}|${newest}`), revision: record.revision }];
    });
  }

  /** Creates or deletes a local record as the barrier does: only under the keyring that has encrypted it may it be committed. */
  writeNote(): void {
    const [keyring, witness] = [this.keyring(), this.machine.getSync(localPath)];
    if (keyring === undefined || witness === undefined) return;
    const conditions = [
      { path: keyringPath, revision: keyring.revision },
      { path: localPath, revision: witness.revision },
    ];
    const isPresent = this.machine.getSync(notePath) !== undefined;
    const value = isPresent ? null : Buffer.from(`${this.name}|${keyring.keys.at(-1)}`);
    this.propose({ conditions, writes: [{ path: notePath, value }] });
  }

  image(): Image {
    const image = new Map<string, string>();
    for (const path of replicatedPaths) {
      const record = this.machine.getSync(path);
      if (record !== undefined) image.set(path, `${Buffer.from(record.value).toString()}@${record.revision}`);
    }
    return image;
  }

  records(): ReplicatedRecord[] {
    return replicatedPaths.flatMap((path) => {
      const record = this.machine.getSync(path);
      return record === undefined ? [] : [{ path, ...record }];
    });
  }

  /** Writes the state to the disk of the active node, from which whole states are sent. */
  flush(): Promise<void> {
    return new Promise((resolve, reject) => this.machine.flush((error) => (error ? reject(error) : resolve())));
  }

  /** Returns whether the active node may accept or acknowledge the writes of clients now. */
  accepts(): boolean {
    if (this.active === undefined || this.state?.role !== 'primary' || !this.isUp || this.isSuspended) return false;
    return this.active.node.fence.refusal({ conditions: [], writes: [{ path: keyringPath, value: null }] }) === undefined;
  }

  /** Names of the clusters that have followed this one as secondaries. */
  get registered(): ReadonlySet<string> {
    return this.#registered;
  }

  /** Commits that a cluster follows this one; resolves if that is committed while the active node is the same. */
  register(secondary: string): Promise<void> {
    const { clock, random } = this.#parts;
    const { active } = this;
    return new Promise((resolve) =>
      clock.after(random.between(1, 60), () => {
        if (this.active !== active) return;
        this.propose({ conditions: [], writes: [] }, (result) => {
          if (result !== 'committed') return;
          this.#registered.add(secondary);
          this.active?.node.registry.read();
          resolve();
        });
      }),
    );
  }

  /** This cluster counts at its primary. Until then it needs the contact with its own secondaries of an earlier time. */
  counted(): void {
    if (this.isCounted) return;
    this.isCounted = true;
    this.#registered.clear();
    this.active?.node.registry.read();
  }

  revoke(secondary: string): void {
    this.#registered.delete(secondary);
    this.active?.node.registry.read();
  }

  /** Returns a node that has just started. */
  #newNode(): SiteNode {
    const { clock, random } = this.#parts;
    const delay = (): Promise<void> => new Promise((resolve) => clock.after(random.between(1, 40), resolve));
    const registry = new KnownRegistry(this.#registered, delay);
    const driver = { status: () => ({ term: this.#term }) };
    const storage = { machine: this.machine, driver, clockJumpedMs: () => this.#jumpedMs };
    const fence = new WriteFence(storage, registry, this);
    return { fence, registry, secondary: { isPromoting: false, lastHeard: undefined, answeredMs: undefined } };
  }

  #apply(data: Buffer | undefined): [Result, number] {
    const before = this.state;
    const command = data && decodeCommand(data);
    const highest = Math.max(0, ...this.records().map(({ revision }) => revision));
    this.#index += 1;
    const index = this.#index;
    const entry: Entry = { term: 1, index, type: data === undefined ? 'noop' : 'normal', data: data ?? Buffer.alloc(0) };
    const { outcome } = this.machine.apply(entry);
    this.machine.publish();
    const after = this.state;
    const committed = outcome === 'committed';
    const step = committed ? stepIn(command) : undefined;
    if (step?.kind === 'attach') {
      this.isCounted = false;
      this.attachments += 1;
    }
    const isUnmeasured = step?.kind === 'establish' || step?.kind === 'attach' || step?.kind === 'restore';
    if (isUnmeasured) this.disk.push(this.machine.measureScope());
    if (after !== undefined) this.#check({ before, after, highest, command: committed ? command : undefined });
    return [outcome, index + (after?.offset ?? 0)];
  }

  #check({ before, after, highest, command }: CheckedEntry): void {
    const { oracle } = this.#parts;
    const image = this.image();
    const facts = () => ({ site: this.name, after, image: [...image], step: stepIn(command) });
    const step = stepIn(command)?.kind;
    const revision = this.#index + after.offset;
    const writes = writesIn(command).some(({ path }) => !isLocal(after, path));
    holds('a new revision is above every old one', !writes || revision > highest, () => ({ revision, highest, ...facts() }));
    if (after.role === 'primary' || step === 'demote') {
      oracle.note(after, step === 'demote' ? after.index : revision, image);
    } else if (after.index !== before?.index || step === 'swap') {
      const expected = oracle.at(after.epochs, after.index);
      const isFollowing = after.role === 'secondary' && after.epochs.length > 0;
      holds(
        "a secondary has its primary's records at the same position",
        !isFollowing || (expected !== undefined && oracle.same(expected, image)),
        () => ({ expected: expected && [...expected], ...facts() }),
      );
      const restoredAt = oracle.restoreBefore(after.epochs, after.index);
      holds('a secondary knows the newest restore in its state', !isFollowing || after.restoredAt === restoredAt, () => ({
        ...{ restoredAt, ...facts() },
      }));
    }
    // A cluster that has left the set, or has no state of it yet, has records of no epoch.
    for (const [path, text] of after.epochs.length === 0 ? [] : image) {
      const [value = '', at] = text.split('@');
      const epoch = oracle.epochAt(after.epochs, Number(at));
      holds('no record crosses epochs', value.startsWith(`${epoch?.id}:`), () => ({ path, text, epoch, ...facts() }));
    }
    this.#checkKeys(after, command, facts);
  }

  #checkKeys(state: ReplicationState, command: Command | undefined, facts: () => object): void {
    const own = this.machine.getSync(localPath)?.value;
    this.#hasOwn ||= own !== undefined;
    const [site, ownKey = ''] = Buffer.from(own ?? [])
      .toString()
      .split('|');
    const other = this.machine.getSync(otherLocalPath)?.value.toString();
    holds('local records stay', !this.#hasOwn || (site === this.name && other === this.name), facts);
    const keys = this.keyring()?.keys;
    const [, noteKey = ownKey] = this.machine.getSync(notePath)?.value.toString().split('|') ?? [];
    const isOpen = [ownKey, noteKey].every((key) => keys?.includes(key) !== false);
    holds('the keyring opens local records', !this.#hasOwn || state.epochs.length === 0 || isOpen, () => ({
      ...{ ownKey, noteKey, keys, ...facts() },
    }));
    for (const { path, value } of this.records())
      if (path !== keyringPath)
        holds('the keyring opens every record', keys?.includes(keyOf(value)) === true, () => ({ path, keys, ...facts() }));
    // The writes of a cluster outside of the set count as an epoch of their own.
    const epoch = state.epochs.at(-1) ?? { id: `alone-${this.name}` };
    for (const { path, value } of writesIn(command)) {
      if (value === null || !keyPaths.includes(path)) continue;
      const key = keyOf(value);
      holds('no key encrypts in two epochs', this.#parts.oracle.encrypts(key, epoch), () => ({ path, key, ...facts() }));
    }
  }
}

interface CheckedEntry {
  readonly before: ReplicationState | undefined;
  readonly after: ReplicationState;
  readonly highest: number;
  readonly command: Command | undefined;
}

const stepIn = (command: Command | undefined): ReplicationStep | undefined =>
  command !== undefined && 'replication' in command ? command.replication : undefined;

const writesIn = (command: Command | undefined): readonly Write[] =>
  command !== undefined && 'writes' in command ? command.writes : [];
