import { RepeatingTask, sharedRun } from '@transitd/event-loop';
import type { HealthAnswer } from '@transitd/health';
import { systemClock } from '@transitd/process';
import { createWrappingKeys, runActiveTasks } from './active-tasks.ts';
import { HealthLog } from './health-log.ts';
import type { JoinAttempts } from './join-attempts.ts';
import type { NodeHost } from './node-host.ts';
import type { Phases } from './phases.ts';

const tickMs = 1000;
const activeTasksIntervalMs = 10_000;
/** Long, because generating a key takes a processor for seconds: a node that has just started has better uses for it. */
const wrappingKeysIntervalMs = 60_000;

interface MaintainedNode {
  readonly phases: Pick<Phases, 'member'>;
  readonly joinAttempts: JoinAttempts;
  readonly node: { readonly health: HealthAnswer };
}

type MaintenanceHost = Pick<NodeHost, 'audit' | 'clock' | 'log' | 'opened'>;

/** The periodic work of a node: retries every second, and the tasks of the active node every ten seconds, or every minute. */
export class NodeMaintenance {
  readonly #host: MaintenanceHost;
  readonly #node: MaintainedNode;
  readonly #tasks = [
    new RepeatingTask(tickMs, () => void this.#tick()),
    new RepeatingTask(activeTasksIntervalMs, () => void this.#activeRound()),
    new RepeatingTask(wrappingKeysIntervalMs, () => void this.#wrappingKeysRound()),
  ];
  readonly #healthLog: HealthLog;
  readonly #activeRound = sharedRun(() => this.runActiveTasks());
  readonly #wrappingKeysRound = sharedRun(() => this.createWrappingKeys());

  constructor(host: MaintenanceHost, node: MaintainedNode) {
    this.#host = host;
    this.#node = node;
    this.#healthLog = new HealthLog(host.log, systemClock);
  }

  start(): void {
    for (const task of this.#tasks) task.start();
  }

  stop(): void {
    for (const task of this.#tasks) task.stop();
  }

  /** Observes clocks and health, and retries what has not succeeded: a join, the rest of a restore, an unseal. */
  async #tick(): Promise<void> {
    const { opened, clock } = this.#host;
    const { phases, joinAttempts, node } = this.#node;
    clock.compare();
    this.#healthLog.observe(node.health.code);
    const { member } = phases;
    for (const provider of opened.providers) void provider.tick(); // not awaited: a provider may take seconds
    void member?.seal.tick();
    void member?.usage.tick();
    await (member === undefined ? joinAttempts.retry() : member.tick());
  }

  /** Runs one round of the active node's tasks; does nothing on any other node. */
  async runActiveTasks(): Promise<void> {
    const { member } = this.#node.phases;
    if (member !== undefined) await runActiveTasks(member, this.#host);
  }

  /** Creates the wrapping keys of mounts that have none, before the first request for them; does nothing on any other node. */
  async createWrappingKeys(): Promise<void> {
    const { member } = this.#node.phases;
    if (member !== undefined) await createWrappingKeys(member, this.#host);
  }
}
