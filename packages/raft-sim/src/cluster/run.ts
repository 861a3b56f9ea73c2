import type { Verdict } from '../history/linearizable.ts';
import type { CoverageEvent } from './checks/coverage.ts';
import { Trace, type TraceLine } from './checks/trace.ts';
import { holds, Violation } from './checks/violation.ts';
import type { SimConfig } from './config/config.ts';
import { act, setFitness } from './faults/actions.ts';
import { runExtraSchedule } from './faults/extra-actions.ts';
import { runSeparateFaults } from './faults/separate-actions.ts';
import type { StorageMaker } from './storage/storage.ts';
import { Cluster, electionMs } from './world/cluster.ts';

export interface RunResult {
  readonly seed: number;
  readonly events: number;
  readonly virtualMs: number;
  /** Equal for equal configurations, otherwise the run is not deterministic. */
  readonly hash: string;
  readonly coverage: ReadonlyMap<CoverageEvent, number>;
  readonly verdicts: Readonly<Record<Verdict, number>>;
  readonly failure?: {
    readonly rule: string;
    readonly message: string;
    readonly stack: string;
    readonly last: readonly string[];
  };
}

/** Twenty of the longest election timeouts. */
const PROGRESS_MS = 40 * electionMs;
const LAST_LINES = 60;

/** Plays one configuration to its verdict. Never throws: a broken rule is in the result. */
export function runSimulation(config: SimConfig, listener?: (line: TraceLine) => void): RunResult {
  const simulation = new Simulation(config, { listener });
  while (simulation.advance()) {}
  return simulation.result();
}

/**
 * Plays one configuration on a storage that uses promises. Its devices complete only by events of the simulation; `settle` runs everything
 * that follows from an event before the next one, so the same configuration gives the same run here too.
 */
export async function runSimulationOn(
  storage: StorageMaker,
  config: SimConfig,
  { settle, listener }: { settle(): Promise<void>; readonly listener?: (line: TraceLine) => void },
): Promise<RunResult> {
  const simulation = new Simulation(config, { storage, listener });
  while (simulation.advance()) await settle();
  return simulation.result();
}

interface SimulationOptions {
  readonly storage?: StorageMaker | undefined;
  readonly listener?: ((line: TraceLine) => void) | undefined;
}

/** One run, event by event. */
class Simulation {
  readonly #config: SimConfig;
  readonly #trace: Trace;
  readonly #play: Generator<void, RunResult['verdicts']>;
  #cluster: Cluster | undefined;
  #verdicts: RunResult['verdicts'] = { linearizable: 0, violated: 0, unknown: 0 };
  #failure: RunResult['failure'];

  constructor(config: SimConfig, { storage, listener }: SimulationOptions) {
    this.#config = config;
    this.#trace = new Trace(listener);
    this.#play = this.#begin(storage);
  }

  /** Plays one event; returns false if it was the last one or broke a rule. */
  advance(): boolean {
    try {
      const { done, value } = this.#play.next();
      if (done === true) this.#verdicts = value;
      return done !== true;
    } catch (error) {
      const { message, stack = '' } = error instanceof Error ? error : new Error(String(error));
      const rule = error instanceof Violation ? error.rule : message.replace(/ \{.*/s, '');
      this.#failure = { rule, message, stack, last: this.#trace.last(LAST_LINES) };
      return false;
    }
  }

  result(): RunResult {
    const cluster = this.#cluster;
    return {
      seed: this.#config.seed,
      events: cluster?.events ?? 0,
      virtualMs: cluster?.clock.now() ?? 0,
      hash: this.#trace.hash,
      coverage: cluster?.coverage.counts() ?? new Map(),
      verdicts: this.#verdicts,
      ...(this.#failure === undefined ? {} : { failure: this.#failure }),
    };
  }

  *#begin(storage: StorageMaker | undefined): Generator<void, RunResult['verdicts']> {
    const cluster = new Cluster(this.#config, this.#trace, storage);
    this.#cluster = cluster;
    yield;
    yield* disturb(cluster);
    yield* recover(cluster);
    return cluster.clients.check(cluster.operations);
  }
}

/** Phase 1: the schedule, the clients, and safety after every event. */
export function* disturb(cluster: Cluster): Generator<void> {
  const { config, clock } = cluster;
  let ended = false;
  const next = (position: number): void => {
    const action = config.schedule[position];
    if (action === undefined) return;
    clock.after(Math.max(0, action.atMs - clock.now()), () => {
      if (ended) return;
      if (clock.now() >= cluster.undisturbedUntilMs) act(cluster, action);
      next(position + 1);
    });
  };
  next(0);
  runExtraSchedule(cluster);
  runSeparateFaults(cluster);
  cluster.clients.start();
  while (cluster.events < config.events && cluster.step()) yield;
  ended = true;
}

/** Phase 2: every fault ends, and then every request must be answered and every node must agree. */
function* recover(cluster: Cluster): Generator<void> {
  const { clock, network, members, clients, operator, trace } = cluster;
  cluster.isHealed = true;
  network.heal();
  clients.stop();
  trace.note(clock.now(), 'heal', 0);
  for (const member of members) {
    member.slowness = { untilMs: 0, extraMs: 0 };
    member.slowApply = { untilMs: 0, entryMs: 0 };
    member.stall = undefined;
    member.hangs.clear();
    member.storage.mend();
    setFitness(cluster, member, 'fit');
    // A node two versions behind the newest is upgraded now; a difference of one version is tolerated.
    if (member.version < cluster.config.skew) cluster.crash(member);
    cluster.start(member);
  }
  const untilMs = clock.now() + PROGRESS_MS;
  // The number of events is limited too: a node that always has work but makes no progress would stop the clock.
  const eventsMax = cluster.events + 100_000;
  const within = function* (state: string, reached: () => boolean): Generator<void> {
    for (let nextCheck = 0; ; ) {
      if (cluster.events >= nextCheck) {
        if (reached()) return;
        nextCheck = cluster.events + 20;
      }
      const goesOn = clock.now() < untilMs && cluster.events < eventsMax && cluster.step();
      holds(`once faults end, ${state}`, goesOn, () => stateOf(cluster));
      yield;
    }
  };
  let tidyAtMs = 0;
  let isTidy = false;
  yield* within('the cluster agrees', () => {
    if (clock.now() >= tidyAtMs) {
      tidyAtMs = clock.now() + 300;
      isTidy = operator.tidy();
    }
    return isTidy && agrees(cluster);
  });
  let unread = 0;
  for (const member of membersOf(cluster)) {
    unread += 1;
    const read = (): void =>
      clients.readAll(member, (answered) => {
        if (answered) unread -= 1;
        else clock.after(electionMs / 10, read);
      });
    read();
  }
  yield* within('every member can be read', () => unread === 0);
}

/** Returns the members of the leader's configuration, if there is a leader. */
function membersOf(cluster: Cluster): NonNullable<ReturnType<Cluster['member']>>[] {
  const conf = cluster.leader?.observed.status?.conf;
  return [...(conf?.voters ?? []), ...(conf?.learners ?? [])].flatMap((id) => cluster.member(id) ?? []);
}

/** Returns whether there is one leader, no waiting client, and every member has the same log, applied to the same state. */
function agrees(cluster: Cluster): boolean {
  const { leader, clients } = cluster;
  const status = leader?.observed.status;
  const incarnation = leader?.incarnation;
  if (clients.waiting > 0 || status === undefined || incarnation === undefined) return false;
  const { applied, digest } = incarnation.machine;
  if (status.commitIndex !== status.lastIndex || applied !== status.lastIndex) return false;
  return membersOf(cluster).every((member) => {
    const machine = member.incarnation?.machine;
    const theirs = member.observed.status;
    return (
      machine?.applied === applied && machine.digest === digest && theirs?.lastIndex === applied && theirs.commitIndex === applied
    );
  });
}

function stateOf(cluster: Cluster): Record<string, unknown> {
  const nodes = cluster.members.map(({ id, fate, incarnation, observed: { status } }) => {
    if (incarnation === undefined || status === undefined) return `${id}: ${fate}`;
    const { role, term, commitIndex, lastIndex, conf, removed } = status;
    const halves = `${conf.voters}|${conf.votersOutgoing}|${conf.learners}`;
    const { applied } = incarnation.machine;
    const progress = `commit ${commitIndex}/${lastIndex} applied ${applied}`;
    return `${id}: ${role} term ${term} ${progress} conf ${halves}${removed ? ' removed' : ''}`;
  });
  return { waiting: cluster.clients.waiting, nodes };
}
