// Clients that create, set, rotate, read and delete keys through any node while faults strike the cluster.
import { setTimeout as delay } from 'node:timers/promises';
import { SimRandom } from '@transitd/raft-sim';
import { type Answer, base64 } from '../../process/live-server.ts';
import { planted } from '../../process/secret-watch.ts';
import { type Asked, History, type KeyKind } from './history.ts';
import type { LiveCluster } from './live-cluster.ts';
import type { LiveNode } from './live-node.ts';
import { attempt, type Outcome } from './outcome.ts';
import { patienceMs, until } from './until.ts';

export interface WorkloadOptions {
  readonly clients?: number;
  readonly settings?: number;
  readonly counters?: number;
  readonly seed?: number;
  /** Pause of a client after each call, by default `pauseMs`. */
  readonly pauseMs?: number;
  /** Part of the name of every key, so that several workloads can use one cluster; lower-case letters and digits. */
  readonly label?: string;
}

/** An acknowledged write, passed to callers that wait for one. */
export interface Acknowledged {
  readonly node: LiveNode;
  readonly begunMs: number;
  readonly doneMs: number;
}

export interface Encrypted {
  readonly key: string;
  readonly ciphertext: string;
  readonly plaintext: string;
}

/** The shortest period that the service accepts; a setting is this plus a number that no other call uses. */
const periodMin = 3_600;
/**
 * Pause of a client after each call, also after a refusal. It leaves the processors to the nodes and to other suites, so that a fault takes
 * the time of its timers and not longer.
 */
const pauseMs = 50;
const callMs = 15_000;
const indexHeader = 'X-Service-Index';

export class Workload {
  readonly history = new History();
  readonly created = new Set<string>();
  readonly encrypted: Encrypted[] = [];
  /** Answers of standbys that were older than a change acknowledged before the call. */
  readonly stale: string[] = [];
  acknowledged = 0;
  /** Number of keys that were read through a node that did not create them. */
  readElsewhere = 0;
  readonly #cluster: LiveCluster;
  readonly #random: SimRandom;
  readonly #options: Required<Omit<WorkloadOptions, 'seed'>>;
  /** How often each refusal or unknown outcome occurred, by its text. */
  readonly #troubles = new Map<string, number>();
  /** Callers that wait for a write, with the functions that end the wait. */
  readonly #watchers = new Map<(write: Acknowledged) => void, NodeJS.Timeout>();
  #serial = 0;
  #stopping = false;
  #clients: Promise<unknown> = Promise.resolve();

  private constructor(
    cluster: LiveCluster,
    { clients = 8, settings = 12, counters = 6, seed = 1, label = '', ...more }: WorkloadOptions,
  ) {
    this.#cluster = cluster;
    this.#random = new SimRandom(seed);
    this.#options = { clients, settings, counters, label, pauseMs, ...more };
  }

  /** Creates the counters and starts the clients. */
  static async start(cluster: LiveCluster, options: WorkloadOptions = {}): Promise<Workload> {
    const workload = new Workload(cluster, options);
    const leader = await cluster.leader();
    for (let i = 0; i < workload.#options.counters; i++) {
      // Repeated without a leader or with an unknown outcome: creating a key twice changes nothing.
      let last: Outcome | undefined;
      await until(
        `${workload.#name('counter', i)} is made`,
        async () => {
          last = await attempt(cluster.ask(leader, 'POST', `transit/keys/${workload.#name('counter', i)}`, {}));
          return last.kind === 'done';
        },
        { explain: () => JSON.stringify(last) },
      );
    }
    cluster.bears(workload);
    const clients = Array.from({ length: workload.#options.clients }, (_, i) => workload.#client(i));
    workload.#clients = Promise.all(clients);
    return workload;
  }

  /** Stops new calls; resolves when every client has its last answer. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#clients;
    for (const timer of this.#watchers.values()) clearTimeout(timer);
  }

  /** Resolves with the first acknowledged write that starts from now on through one of these nodes. @throws after a time-out */
  nextWrite(through: readonly LiveNode[]): Promise<Acknowledged> {
    const fromMs = performance.now();
    return new Promise((resolve, reject) => {
      const watcher = (write: Acknowledged): void => {
        if (write.begunMs < fromMs || !through.includes(write.node)) return;
        this.#watchers.delete(watcher);
        clearTimeout(timer);
        resolve(write);
      };
      const timer = setTimeout(() => {
        this.#watchers.delete(watcher);
        const names = through.map(({ name }) => name).join(', ');
        reject(new Error(`no write through ${names} within ${patienceMs} ms\n${this.troublesText}\n${this.#cluster.tails()}`));
      }, patienceMs);
      this.#watchers.set(watcher, timer);
    });
  }

  /** Returns the errors that clients got. */
  get troublesText(): string {
    return [...this.#troubles].map(([trouble, count]) => `${count} × ${trouble}`).join('\n');
  }

  /** Each client has its own node, so that a node without answers blocks only some of them. */
  async #client(number: number): Promise<void> {
    const { nodes } = this.#cluster;
    const node = this.#cluster.node(1 + (number % nodes.length));
    while (!this.#stopping) {
      await this.#step(node);
      await delay(this.#options.pauseMs);
    }
  }

  #step(node: LiveNode): Promise<void> {
    const setting = this.#name('setting', this.#random.below(this.#options.settings));
    const counter = this.#name('counter', this.#random.below(this.#options.counters));
    const dice = this.#random.below(100);
    if (dice < 15) return this.#createNew(node);
    if (dice < 25) return this.#write(node, setting, 'setting', { kind: 'create', value: this.#newValue() });
    if (dice < 45) return this.#write(node, setting, 'setting', { kind: 'set', value: this.#newValue() });
    if (dice < 50) return this.#write(node, setting, 'setting', { kind: 'delete' });
    if (dice < 65) return this.#write(node, counter, 'counter', { kind: 'rotate' });
    if (dice < 75) return this.#read(node, setting, 'setting');
    if (dice < 85) return this.#read(node, counter, 'counter');
    return this.#encrypt(node, counter);
  }

  /** Creates a key that no other client uses: once acknowledged, it must exist for the rest of the run, also for readers elsewhere. */
  async #createNew(node: LiveNode): Promise<void> {
    this.#serial += 1;
    const key = this.#name('new', this.#serial);
    const begunMs = performance.now();
    const outcome = await this.#ask(node, 'POST', `transit/keys/${key}`, {});
    if (outcome.kind !== 'done') return;
    this.created.add(key);
    this.#acknowledge(node, begunMs);
    await this.#readElsewhere(node, key, outcome.answer.headers.get(indexHeader) ?? '');
  }

  /** Reads a new key through another node, with the index of its creation. */
  async #readElsewhere(writer: LiveNode, key: string, index: string): Promise<void> {
    const others = this.#cluster.others(writer);
    if (others.length === 0) return;
    const reader = this.#random.pick(others);
    const headers = { [indexHeader]: index };
    const options = { withinMs: callMs, headers };
    const outcome = await attempt(this.#cluster.ask(reader, 'GET', `transit/keys/${key}`, undefined, options));
    if (outcome.kind === 'done') this.readElsewhere += 1;
    else if (outcome.kind === 'refused' && outcome.status === 404)
      this.stale.push(`${reader.name} did not find ${key} of ${writer.name} at ${index}`);
  }

  async #write(node: LiveNode, key: string, kind: KeyKind, asked: Asked): Promise<void> {
    const call = this.history.begin(key, kind, asked, node.name);
    const begunMs = performance.now();
    const outcome = await this.#ask(node, ...requestOf(key, asked));
    if (outcome.kind === 'unknown') return;
    const value = valueAfter(kind, asked, outcome);
    if (value === undefined) this.history.refused(call);
    else this.history.returned(call, value);
    if (outcome.kind === 'done') this.#acknowledge(node, begunMs);
  }

  /** Sends a change without effect. Only the active node answers it, whichever node receives it, so it is a read that is never stale. */
  async #read(node: LiveNode, key: string, kind: KeyKind): Promise<void> {
    const call = this.history.begin(key, kind, { kind: 'read' }, node.name);
    const outcome = await this.#ask(node, 'POST', `transit/keys/${key}/config`, {});
    const value = outcome.kind === 'unknown' ? undefined : valueAfter(kind, { kind: 'read' }, outcome);
    if (value === undefined) this.history.refused(call);
    else this.history.returned(call, value);
  }

  /** Standbys answer this themselves, but never with a version older than an acknowledged rotation. */
  async #encrypt(node: LiveNode, key: string): Promise<void> {
    this.#serial += 1;
    const plaintext = base64(planted(`text ${this.#serial}`));
    const floor = this.history.floor(key);
    const outcome = await this.#ask(node, 'POST', `transit/encrypt/${key}`, { plaintext });
    if (outcome.kind !== 'done') return;
    const version = Number(outcome.answer.at('data.key_version'));
    if (!(version >= floor)) this.stale.push(`${node.name} encrypted with version ${version} of ${key} after ${floor}`);
    this.encrypted.push({ key, ciphertext: outcome.answer.string('data.ciphertext'), plaintext });
  }

  async #ask(node: LiveNode, method: string, path: string, body?: unknown): Promise<Outcome> {
    const outcome = await attempt(this.#cluster.ask(node, method, path, body, { withinMs: callMs }));
    if (outcome.kind !== 'done') {
      const trouble = `${outcome.kind}: ${outcome.kind === 'refused' ? `${outcome.status} ` : ''}${outcome.text}`;
      const told = trouble
        .replace(/(setting|counter|new)-[\w-]+/g, '$1')
        .replace(/entry \d+/, 'an entry')
        .trim();
      this.#troubles.set(told, (this.#troubles.get(told) ?? 0) + 1);
    }
    return outcome;
  }

  #acknowledge(node: LiveNode, begunMs: number): void {
    this.acknowledged += 1;
    for (const watcher of [...this.#watchers.keys()]) watcher({ node, begunMs, doneMs: performance.now() });
  }

  #name(kind: 'setting' | 'counter' | 'new', number: number): string {
    return `${kind}-${this.#options.label}${number}`;
  }

  #newValue(): number {
    this.#serial += 1;
    return periodMin + this.#serial;
  }
}

function requestOf(key: string, asked: Asked): [method: string, path: string, body?: unknown] {
  switch (asked.kind) {
    case 'create':
      return ['POST', `transit/keys/${key}`, { auto_rotate_period: asked.value }];
    case 'set':
      return ['POST', `transit/keys/${key}/config`, { auto_rotate_period: asked.value, deletion_allowed: true }];
    case 'delete':
      return ['DELETE', `transit/keys/${key}`];
    case 'rotate':
      return ['POST', `transit/keys/${key}/rotate`, {}];
    case 'read':
      return ['POST', `transit/keys/${key}/config`, {}];
  }
}

/** Returns the key's number after the call; undefined for a refusal without that information. */
function valueAfter(kind: KeyKind, asked: Asked, outcome: Extract<Outcome, { kind: 'done' | 'refused' }>): number | undefined {
  if (outcome.kind === 'refused') {
    const missing = (outcome.status === 400 || outcome.status === 404) && /not found|could be found/i.test(outcome.text);
    return missing && kind === 'setting' ? 0 : undefined;
  }
  return asked.kind === 'delete' ? 0 : numberOf(kind, outcome.answer);
}

function numberOf(kind: KeyKind, answer: Answer): number {
  const value = answer.at(kind === 'setting' ? 'data.auto_rotate_period' : 'data.latest_version');
  if (typeof value !== 'number') throw new Error(`a key without its number: ${answer.status} ${answer.text}`);
  return value;
}
