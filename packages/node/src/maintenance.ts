import type { Logger, NodeObserver } from '@transitd/process';
import { keepUp } from './active-tasks.ts';
import type { NodeClock } from './clock/node-clock.ts';
import type { ClusterMember } from './cluster-member.ts';
import { HealthLog } from './health-log.ts';
import type { JoinAttempts } from './join/join-attempts.ts';
import type { ServiceLoader } from './service-loader.ts';

const tickMs = 1000;
const upkeepIntervalMs = 10_000;

export interface NodeMaintenanceParts {
  readonly joinAttempts: JoinAttempts;
  readonly part: ClusterMember;
  readonly serviceLoader: ServiceLoader;
  readonly log: Logger;
  readonly clock: NodeClock;
  readonly observer: NodeObserver;
  readonly isActive: () => boolean;
  /** The code that health answers now. */
  readonly healthCode: () => number;
  /** Unseals where the node does that by itself, and nobody wanted it sealed. */
  readonly unsealAgain: () => Promise<void>;
}

/** What a node does by itself, from time to time. */
export class NodeMaintenance {
  readonly #parts: NodeMaintenanceParts;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #healthLog: HealthLog;
  #atUpkeep = false;

  constructor(parts: NodeMaintenanceParts) {
    this.#parts = parts;
    this.#healthLog = new HealthLog({ log: parts.log, nowMs: () => performance.now() });
  }

  begin(): void {
    this.#timers.push(setInterval(() => void this.#tick(), tickMs));
    this.#timers.push(setInterval(() => void this.#keepUp(), upkeepIntervalMs));
  }

  end(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** What did not succeed at once is tried again. */
  async #tick(): Promise<void> {
    const { joinAttempts, part, serviceLoader, clock, observer, unsealAgain, healthCode } = this.#parts;
    clock.look();
    this.#healthLog.observe(healthCode());
    if (part.store === undefined) return joinAttempts.again();
    part.noteFitness();
    for (const { learner, silentMs } of part.storage?.driver.peers() ?? []) if (!learner) observer.lastContact(silentMs);
    if (serviceLoader.services !== undefined) await part.snapshots?.finish().catch(() => undefined); // the next tick tries again
    await unsealAgain();
  }

  async #keepUp(): Promise<void> {
    if (this.#atUpkeep) return; // a long round is not joined by another
    this.#atUpkeep = true;
    await this.upkeep().finally(() => {
      this.#atUpkeep = false;
    });
  }

  /** What the active node does; nothing while it is not active. */
  async upkeep(): Promise<void> {
    const { part, serviceLoader, log, isActive } = this.#parts;
    if (serviceLoader.services === undefined || !isActive() || part.store === undefined) return;
    await part.snapshots
      ?.upkeep()
      .catch((error: Error) => log.warn({ reason: error.message }, 'what a restore left is cleared later'));
    await keepUp({ services: serviceLoader.services, barrier: part.store.barrier, log, isActive });
  }
}
