import { noDisputes } from '@transitd/access';
import { openReadingView } from '@transitd/barrier';
import { type ReadRole, readRoleOf } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import { freshForIntervals, type NodeStatus } from '@transitd/health';
import { reasonOf } from '@transitd/process';
import { ClockJump, grantUntil } from '@transitd/raft-core';
import { type RandomSource, TransitError } from '@transitd/transit-engine';
import { leaseMsOf } from './clock/lease-clock.ts';
import { readClocks, readWallClock } from './clock/machine-clocks.ts';
import type { GatewaySession } from './gateway-host.ts';
import { closeServices, loadServices, type Services } from './services.ts';
import { activeStatus, clusterNamed } from './status.ts';
import { ReplicaProxy } from './threads/replica/replica-proxy.ts';
import { deadlinesIn } from './threads/shared/deadline.ts';
import type { NodeMemory } from './threads/shared/node-memory.ts';
import { SealFlag } from './threads/shared/seal-flag.ts';
import { SharedClock } from './threads/shared/shared-clock.ts';
import { CountedUses } from './usage/counted-uses.ts';

/** The memory that a gateway shares with the main thread. */
interface GatewayMemory {
  readonly memory: NodeMemory;
  /** This gateway's row in it. */
  readonly row: number;
}

interface Session {
  readonly proxy: ReplicaProxy;
  services: Services | undefined;
  isOver: boolean;
}

/** The services in a gateway's thread, and whether it may use them. */
export class GatewayServices {
  readonly #config: Config;
  readonly #shared: GatewayMemory;
  readonly #onLost: (reason: string) => void;
  readonly #deadlines: ReturnType<typeof deadlinesIn>;
  readonly #clock: SharedClock;
  readonly #sealFlag: SealFlag;
  readonly #jump = new ClockJump(readClocks());
  /** The uses of keys that this thread has counted and not handed over. */
  readonly uses = new CountedUses();
  #session: Session | undefined;

  /** @param onLost - called when this gateway needs another session: it missed changes, or could not load the services */
  constructor(config: Config, shared: GatewayMemory, onLost: (reason: string) => void) {
    const { memory, row } = shared;
    this.#config = config;
    this.#shared = shared;
    this.#onLost = onLost;
    this.#deadlines = deadlinesIn(memory);
    this.#clock = new SharedClock(memory);
    this.#sealFlag = new SealFlag(memory);
    this.#sealFlag.confirm(row);
  }

  /**
   * Returns the services if this thread may answer from the applied state at this moment, otherwise undefined. The services include every
   * change that any node has answered before the call. The deadline is read before the changes are taken, because a change may be applied,
   * and answered elsewhere, between these steps.
   */
  look(): Services | undefined {
    const session = this.#session;
    if (session?.services === undefined || this.#readRole === undefined) return undefined;
    session.proxy.drain();
    return this.#sealFlag.isSealed ? undefined : session.services;
  }

  /**
   * Returns the status that health reports, if this node is the active one and this gateway can answer requests from its state. Returns
   * undefined otherwise: the main thread knows the other states.
   */
  activeStatus(): NodeStatus | undefined {
    if (this.look() === undefined || !this.#deadlines.active.holds()) return undefined;
    const status = this.#session?.proxy.status();
    if (status === undefined) return undefined;
    const { clusterId, commitIndex } = status;
    return activeStatus({ config: this.#config, cluster: clusterNamed(clusterId), commitIndex, replication: undefined });
  }

  /** Compares the clocks of the machine, the time since boot included; to be called about every 50 milliseconds. */
  compareClocks(): void {
    this.#jump.compare(readClocks());
  }

  /** Begins a session. The services are available once they are loaded. */
  open({ port, start, clusterId, keyring }: GatewaySession): void {
    this.#end();
    const { memory, row } = this.#shared;
    const proxy = new ReplicaProxy({ port, memory, row, start, clusterId });
    const session: Session = { proxy, services: undefined, isOver: false };
    this.#session = session;
    // Watches first: nothing may be answered from services of a state that was replaced.
    proxy.watch('', (changes) => {
      if (changes === 'everything') this.#lost(session, 'the state was replaced, or changes were missed');
    });
    void this.#load(session, keyring);
  }

  /** Drops every key and token, and confirms the seal. */
  seal(): void {
    this.#end();
    this.#sealFlag.confirm(this.#shared.row);
  }

  /** A deadline shows when a grant ends, but not when it was requested. So the earliest possible time counts. */
  get #readRole(): ReadRole | undefined {
    const config = this.#config;
    const { lease, read } = this.#deadlines;
    this.#jump.compare(readWallClock());
    const [nowMs, nowNs] = [performance.now(), process.hrtime.bigint()]; // in this order, an end can only come out early
    return readRoleOf({
      nowMs,
      clockJumpedMs: this.#jump.jumpedMs,
      lease: grantUntil(nowMs + lease.remainingMs(nowNs), leaseMsOf(config)),
      heartbeat: grantUntil(nowMs + read.remainingMs(nowNs), freshForIntervals * config.cluster_heartbeat_interval),
    });
  }

  async #load(session: Session, keyring: SharedArrayBuffer): Promise<void> {
    const config = this.#config;
    try {
      const services = await loadServices(openReadingView(session.proxy, keyring), {
        config: { ...config, pkcs11_libraries: [] }, // a library has one thread, which belongs to the main thread
        clock: this.#clock,
        disputes: noDisputes, // only the main thread dates records
        tracer: undefined,
        sealRandom: hasProvider(config.seal) ? drawnElsewhere : undefined,
        uses: { count: (mount, name, tally) => this.uses.add(mount, name, tally, this.#clock.utcMs()) },
        onFailure: (error) => this.#lost(session, reasonOf(error)),
      });
      // Changes may have arrived since the last record was read. While some are being read, requests are passed on.
      if (session.isOver || this.#sealFlag.isSealed) closeServices(services);
      else session.services = services;
    } catch (error) {
      this.#lost(session, reasonOf(error));
    }
  }

  #lost(session: Session, reason: string): void {
    if (session.isOver) return;
    this.#endSession(session);
    this.#onLost(reason);
  }

  #end(): void {
    if (this.#session !== undefined) this.#endSession(this.#session);
  }

  #endSession(session: Session): void {
    session.isOver = true;
    if (this.#session === session) this.#session = undefined;
    const { services } = session;
    session.services = undefined;
    session.proxy.close();
    if (services !== undefined) closeServices(services);
  }
}

const hasProvider = ({ type }: Config['seal']): boolean => type !== 'shamir' && type !== 'static';

/** Only the main thread calls the provider of the seal. Because of this error, the request is passed to the main thread. */
const drawnElsewhere: RandomSource = {
  bytesMax: Number.POSITIVE_INFINITY,
  draw: () => Promise.reject(new TransitError('invalid_request', 'only the main thread draws from the seal')),
};
