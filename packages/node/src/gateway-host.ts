import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type { Barrier } from '@transitd/barrier';
import { type MemberEvents, readRoleOf } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import { type Grant, grantUntil } from '@transitd/raft-core';
import { type Replica, takesPart } from '@transitd/storage-fsm';
import { leaseMsOf } from './clock/lease-clock.ts';
import type { NodeClock } from './clock/node-clock.ts';
import type { ReadEligibility } from './read-eligibility.ts';
import { gatewayCount } from './services.ts';
import { ChangeFeed } from './threads/replica/change-feed.ts';
import { ReplicaHost } from './threads/replica/replica-host.ts';
import { type Deadline, deadlinesIn } from './threads/shared/deadline.ts';
import { type NodeMemory, newNodeMemory } from './threads/shared/node-memory.ts';
import { SealFlag } from './threads/shared/seal-flag.ts';
import { SharedClock } from './threads/shared/shared-clock.ts';

/**
 * Number of undrained messages of changes after which a gateway gets no more of them, and reads everything again. A message has the changes
 * of one turn; a gateway that drains none of them for about a second is replaced.
 */
const lagMax = 10_000;
/** How long a gateway may take to confirm a seal, in milliseconds. */
const confirmMsMax = 1000;

/** Gives a gateway the records of an unsealed node. */
export interface GatewaySession {
  readonly port: MessagePort;
  /** @see ReplicaHost.start */
  readonly start: number;
  readonly clusterId: string;
  /** Memory of the keyring; wiped when the node is sealed. */
  readonly keyring: SharedArrayBuffer;
}

/** A gateway thread as this class uses it. */
export interface GatewayThread {
  /** Begins a session; the previous one ends. The port is transferred. */
  open(session: GatewaySession): void;
  /** Makes the gateway drop its keys and confirm the seal. */
  seal(): void;
  /** Ends the thread, because it did not confirm a seal; the process ends if the thread does not. */
  terminate(): Promise<void>;
}

interface Attached {
  readonly thread: GatewayThread;
  host: ReplicaHost | undefined;
}

/** The gateways of a node, as its member uses them. */
export type MemberGateways = Pick<GatewayHost, 'follow' | 'serve' | 'lease' | 'closed'>;

/** Of a node without gateway threads. */
export const noGateways: MemberGateways = {
  follow: () => undefined,
  serve: () => undefined,
  lease: () => undefined,
  closed: () => undefined,
};

interface Followed {
  readonly replica: Replica;
  readonly feed: ChangeFeed;
}

/** Whose services the gateways have while it is unsealed. */
interface Served {
  readonly barrier: Barrier;
  readonly eligibility: ReadEligibility;
}

/** How far the gateways are on their way to answer requests. A member is followed before its barrier is open. */
type Phase =
  | { readonly kind: 'noMember' }
  | ({ readonly kind: 'following' } & Followed)
  | ({ readonly kind: 'serving' } & Followed & Served);

/**
 * The main thread's end of all gateways: publishes the applied changes, gives each gateway a session while the node is unsealed, and tells
 * until when they may answer from the applied state. A gateway that may not answer passes its requests to the main thread.
 */
export class GatewayHost {
  readonly memory: NodeMemory;
  readonly #config: Config;
  readonly #nodeClock: NodeClock;
  readonly #deadlines: ReturnType<typeof deadlinesIn>;
  readonly #clock: SharedClock;
  readonly #sealFlag: SealFlag;
  readonly #attached = new Map<number, Attached>();
  #phase: Phase = { kind: 'noMember' };
  /** The services of the member are loaded. */
  #isServing = false;
  #sealing: Promise<void> = Promise.resolve();

  constructor(config: Config, clock: NodeClock) {
    this.#config = config;
    this.#nodeClock = clock;
    this.memory = newNodeMemory(gatewayCount(config));
    this.#deadlines = deadlinesIn(this.memory);
    this.#clock = new SharedClock(this.memory);
    this.#sealFlag = new SealFlag(this.memory);
    this.#clock.publish(clock.steadyMs);
  }

  /** Publishes the changes of this replica from now on. Call it before anything else watches the replica, or listens to the events. */
  follow(replica: Replica, events: MemberEvents): void {
    this.#phase = { kind: 'following', replica, feed: new ChangeFeed({ replica, memory: this.memory, lagMax }) };
    events.on('heartbeatsForgotten', () => this.endDeadlines());
    events.on('digestDiffers', () => this.endDeadlines());
  }

  /** Serves the followed records, which this barrier encrypts, from now on. Call it after everything else listens to the events. */
  serve({ barrier, eligibility, events }: Served & { readonly events: MemberEvents }): void {
    if (this.#phase.kind !== 'following') throw new Error('the gateways follow no replica');
    this.#phase = { ...this.#phase, kind: 'serving', barrier, eligibility };
    barrier.onStateChange(({ sealed }) => {
      if (sealed) this.#seal();
    });
    barrier.sharedKeyring.onChange(() => {
      if (this.#isServing) this.#openAll();
    });
    events.on('services', ({ isLoaded }) => this.#servicesChanged(isLoaded));
  }

  /** The replica is closed; a later start follows another one. */
  closed(): void {
    this.#seal();
    if (this.#phase.kind !== 'noMember') this.#phase.feed.close();
    this.#phase = { kind: 'noMember' };
  }

  /** The services were loaded, loaded again from a restored state, or closed. */
  #servicesChanged(isLoaded: boolean): void {
    this.#isServing = isLoaded;
    if (!isLoaded) {
      this.endDeadlines();
      return;
    }
    this.#sealFlag.unseal();
    this.#openAll();
  }

  /**
   * Adds a gateway thread, which drains from now on.
   * @param row - its row in the memory, free since the previous thread of this row ended
   */
  attach(row: number, thread: GatewayThread): void {
    this.#attached.set(row, { thread, host: undefined });
    if (this.#isServing) this.renew(row);
  }

  /** Begins another session of a gateway, which has lost track of the changes or could not load the services. */
  renew(row: number): void {
    const attached = this.#attached.get(row);
    const session = attached && this.#sessionOf(row, attached);
    if (session !== undefined) attached?.thread.open(session);
  }

  /** Removes a gateway whose thread has ended. */
  detach(row: number): void {
    this.#attached.get(row)?.host?.close();
    this.#attached.delete(row);
  }

  /** Returns the rows of the gateways that lag behind the changes for more than a second. @param nowMs - on a monotonic clock */
  lagging(nowMs: number): readonly number[] {
    return [...this.#attached].flatMap(([row, { host }]) => (host?.lagsTooLong(nowMs) === true ? [row] : []));
  }

  /** Resolves when every gateway has confirmed the latest seal, or has ended. */
  get sealed(): Promise<void> {
    return this.#sealing;
  }

  /**
   * Sets until when gateways may answer; called in every turn of consensus.
   * @param endMs - end of the leader lease on the clock of `performance.now`; undefined while this node holds no lease (decision 105)
   */
  lease(endMs: number | undefined): void {
    const nowNs = process.hrtime.bigint(); // read first, so that the end can only come out early
    const nowMs = performance.now();
    this.#clock.publish(this.#nodeClock.steadyMs, nowNs);
    const phase = this.#phase;
    if (phase.kind !== 'serving' || !phase.eligibility.mayServeInGateways) {
      this.endDeadlines();
      return;
    }
    const { feed, eligibility } = phase;
    const lease = endMs === undefined ? undefined : grantUntil(endMs, leaseMsOf(this.#config));
    const { heartbeat, clockJumpedMs } = eligibility;
    const role = readRoleOf({ nowMs, clockJumpedMs, lease, heartbeat });
    const set = (deadline: Deadline, grant: Grant | undefined, isSet: boolean): void => {
      if (grant !== undefined && isSet) deadline.set(nowNs + BigInt(Math.floor((grant.endMs - nowMs) * 1e6)));
      else deadline.end();
    };
    const { lease: leaseEnd, read, active } = this.#deadlines;
    set(leaseEnd, lease, role === 'active');
    feed.publishStatus(); // health shows the commit index
    // While its cluster replicates with another one, the main thread reports the health.
    set(active, lease, role === 'active' && !takesPart(eligibility.replication));
    set(read, heartbeat, role === 'reader');
  }

  /** From now on no gateway answers from the state, until the next call of {@link lease} that allows it. */
  endDeadlines(): void {
    for (const deadline of Object.values(this.#deadlines)) deadline.end();
  }

  #openAll(): void {
    for (const row of this.#attached.keys()) this.renew(row);
  }

  #sessionOf(row: number, attached: Attached): GatewaySession | undefined {
    const phase = this.#phase;
    if (phase.kind !== 'serving' || !this.#isServing) return undefined;
    const { replica, feed, barrier } = phase;
    const keyring = barrier.sharedKeyring.memory;
    if (keyring === undefined) return undefined;
    attached.host?.close();
    const { port1, port2 } = new MessageChannel();
    attached.host = new ReplicaHost({ replica, feed, memory: this.memory, port: port1, row });
    return { port: port2, start: attached.host.start, clusterId: replica.status().clusterId, keyring };
  }

  #seal(): void {
    this.endDeadlines();
    this.#isServing = false;
    if (this.#sealFlag.isSealed) return;
    this.#sealFlag.seal();
    const confirmed = [...this.#attached].map(async ([row, { thread, host }]) => {
      host?.close();
      thread.seal();
      if (!(await this.#sealFlag.isConfirmed(row, confirmMsMax))) await thread.terminate();
    });
    this.#sealing = Promise.all(confirmed).then(() => undefined);
  }
}
