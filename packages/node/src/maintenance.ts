import type { AuditWriter } from '@transitd/audit';
import type { Barrier } from '@transitd/barrier';
import { type Logger, type NodeObserver, reasonOf } from '@transitd/process';
import { acceptsWrites } from '@transitd/storage-fsm';
import { runActiveTasks } from './active-tasks.ts';
import type { NodeClock } from './clock/node-clock.ts';
import { HealthLog } from './health-log.ts';
import type { JoinAttempts } from './join/join-attempts.ts';
import type { NodeMember } from './member.ts';
import type { NodeSeal } from './node-seal.ts';
import type { ServiceLoader } from './service-loader.ts';
import type { Services } from './services.ts';

const tickMs = 1000;
const activeTasksIntervalMs = 10_000;

export interface NodeMaintenanceParts {
  readonly joinAttempts: JoinAttempts;
  readonly clusterMember: NodeMember;
  readonly nodeSeal: NodeSeal;
  readonly serviceLoader: ServiceLoader;
  readonly log: Logger;
  /** Absent if nothing is audited. */
  readonly audit: AuditWriter | undefined;
  readonly clock: NodeClock;
  readonly observer: NodeObserver;
  readonly isActive: () => boolean;
  /** Returns the present health code. */
  readonly healthCode: () => number;
}

/** The periodic work of a node: retries every second, and the tasks of the active node every ten seconds. */
export class NodeMaintenance {
  readonly #parts: NodeMaintenanceParts;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #healthLog: HealthLog;
  #runsActiveTasks = false;

  constructor(parts: NodeMaintenanceParts) {
    this.#parts = parts;
    this.#healthLog = new HealthLog({ log: parts.log, nowMs: () => performance.now() });
  }

  start(): void {
    this.#timers.push(setInterval(() => void this.#tick(), tickMs));
    this.#timers.push(setInterval(() => void this.#activeRound(), activeTasksIntervalMs));
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** Observes clocks and health, and retries what has not succeeded: a join, the rest of a restore, an unseal. */
  async #tick(): Promise<void> {
    const { joinAttempts, clusterMember, nodeSeal, serviceLoader, clock, observer, healthCode } = this.#parts;
    clock.compare();
    this.#healthLog.observe(healthCode());
    void nodeSeal.tick(); // not awaited: a provider may take seconds
    if (clusterMember.store === undefined) return joinAttempts.retry();
    clusterMember.updateFitness();
    clusterMember.store.replication?.tick();
    for (const { learner, silentMs } of clusterMember.storage?.driver.peers() ?? []) if (!learner) observer.lastContact(silentMs);
    if (serviceLoader.services !== undefined) await clusterMember.snapshots?.finish().catch(() => undefined); // the next tick tries again
  }

  async #activeRound(): Promise<void> {
    if (this.#runsActiveTasks) return; // one round at a time
    this.#runsActiveTasks = true;
    await this.runActiveTasks().finally(() => {
      this.#runsActiveTasks = false;
    });
  }

  /** Runs one round of the active node's tasks; does nothing on any other node. */
  async runActiveTasks(): Promise<void> {
    const { clusterMember, log, audit, isActive } = this.#parts;
    if (this.#active === undefined) return;
    await clusterMember.snapshots
      ?.clearLeftovers()
      .catch((error: Error) =>
        log.warn({ reason: error.message }, 'could not delete the leftovers of a restore; the next round tries again'),
      );
    await this.#raiseFeatureLevel();
    const active = this.#active; // the node may have been sealed meanwhile, or have lost its role
    if (active === undefined) return;
    if (!acceptsWrites(clusterMember.engine?.replication)) return this.#maintainOwnSeal(active.barrier);
    await runActiveTasks({ ...active, log, audit, isActive });
  }

  /** Services and barrier for the tasks of the active node; undefined on any other node. */
  get #active(): { readonly services: Services; readonly barrier: Barrier } | undefined {
    const { clusterMember, serviceLoader, isActive } = this.#parts;
    const [services, barrier] = [serviceLoader.services, clusterMember.store?.barrier];
    return services !== undefined && barrier !== undefined && isActive() ? { services, barrier } : undefined;
  }

  /** On a secondary, only the seal is its own: everything else that the tasks of an active node change comes from the primary. */
  async #maintainOwnSeal(barrier: Barrier): Promise<void> {
    try {
      await barrier.maintain('seal');
    } catch (error) {
      this.#parts.log.warn(
        { reason: reasonOf(error) },
        'could not wrap the root key under the present seal key; the next round tries again',
      );
    }
  }

  async #raiseFeatureLevel(): Promise<void> {
    const { clusterMember, log } = this.#parts;
    try {
      await clusterMember.featureLevel?.maintain();
    } catch (error) {
      log.warn({ reason: reasonOf(error) }, 'could not raise the feature level; the next round tries again');
    }
  }
}
