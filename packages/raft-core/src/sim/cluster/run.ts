import type { Verdict } from '../history/linearizable.ts';
import { act, setFitness } from './actions.ts';
import { Cluster, electionMs } from './cluster.ts';
import type { SimConfig } from './config.ts';
import type { Situation } from './coverage.ts';
import { Trace, type TraceLine } from './trace.ts';
import { holds, Violation } from './violation.ts';

export interface RunResult {
  readonly seed: number;
  readonly events: number;
  readonly virtualMs: number;
  /** Equal for equal configurations, or the run is not deterministic. */
  readonly hash: string;
  readonly coverage: ReadonlyMap<Situation, number>;
  readonly verdicts: Readonly<Record<Verdict, number>>;
  readonly failure?: {
    readonly rule: string;
    readonly message: string;
    readonly stack: string;
    readonly last: readonly string[];
  };
}

/** Twenty election timeouts of the longer kind. */
const PROGRESS_MS = 40 * electionMs;
const LAST_LINES = 60;

/** Plays one configuration from its start to its verdict. Never throws: what was broken is in the result. */
export function runSimulation(config: SimConfig, listener?: (line: TraceLine) => void): RunResult {
  const trace = new Trace(listener);
  let verdicts: RunResult['verdicts'] = { linearizable: 0, violated: 0, unknown: 0 };
  let cluster: Cluster | undefined;
  let failure: RunResult['failure'];
  try {
    cluster = new Cluster(config, trace);
    disturb(cluster);
    recover(cluster);
    verdicts = cluster.clients.check(cluster.operations);
  } catch (error) {
    const { message, stack = '' } = error instanceof Error ? error : new Error(String(error));
    const rule = error instanceof Violation ? error.rule : message.replace(/ \{.*/s, '');
    failure = { rule, message, stack, last: trace.last(LAST_LINES) };
  }
  return {
    seed: config.seed,
    events: cluster?.events ?? 0,
    virtualMs: cluster?.clock.now() ?? 0,
    hash: trace.hash,
    coverage: cluster?.coverage.counts() ?? new Map(),
    verdicts,
    ...(failure === undefined ? {} : { failure }),
  };
}

/** Phase 1: the schedule, the clients, and safety after every event. */
function disturb(cluster: Cluster): void {
  const { config, clock } = cluster;
  let ended = false;
  const next = (position: number): void => {
    const action = config.schedule[position];
    if (action === undefined) return;
    clock.after(Math.max(0, action.atMs - clock.now()), () => {
      if (ended) return;
      act(cluster, action);
      next(position + 1);
    });
  };
  next(0);
  cluster.clients.start();
  while (cluster.events < config.events && cluster.step()) {}
  ended = true;
}

/** Phase 2: every fault ends, and then everything that was asked must come to an end, on every node alike. */
function recover(cluster: Cluster): void {
  const { clock, network, members, clients, operator, trace } = cluster;
  cluster.isHealed = true;
  network.heal();
  clients.stop();
  trace.note(clock.now(), 'heal', 0);
  for (const member of members) {
    member.slowness = { untilMs: 0, extraMs: 0 };
    setFitness(cluster, member, 'fit');
    // Who is two versions behind the newest ends the upgrade now; one version is lived with.
    if (member.version < cluster.config.skew) cluster.crash(member);
    cluster.start(member);
  }
  const untilMs = clock.now() + PROGRESS_MS;
  // A node that does something at every moment without getting anywhere stops the clock.
  const eventsMax = cluster.events + 100_000;
  const within = (state: string, reached: () => boolean): void => {
    for (let nextLook = 0; ; ) {
      if (cluster.events >= nextLook) {
        if (reached()) return;
        nextLook = cluster.events + 20;
      }
      const goesOn = clock.now() < untilMs && cluster.events < eventsMax && cluster.step();
      holds(`once faults end, ${state}`, goesOn, () => situation(cluster));
    }
  };
  let tidyAtMs = 0;
  let isTidy = false;
  within('the cluster agrees', () => {
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
  within('every member can be read', () => unread === 0);
}

/** Nodes of the leader's configuration, if there is a leader. */
function membersOf(cluster: Cluster): NonNullable<ReturnType<Cluster['member']>>[] {
  const conf = cluster.leader?.watched.status?.conf;
  return [...(conf?.voters ?? []), ...(conf?.learners ?? [])].flatMap((id) => cluster.member(id) ?? []);
}

/** One leader, no waiting client, and every member with the same log, applied to the same state. */
function agrees(cluster: Cluster): boolean {
  const { leader, clients } = cluster;
  const status = leader?.watched.status;
  const run = leader?.run;
  if (clients.waiting > 0 || status === undefined || run === undefined) return false;
  const { applied, digest } = run.machine.image;
  if (status.commitIndex !== status.lastIndex || applied !== status.lastIndex) return false;
  return membersOf(cluster).every((member) => {
    const image = member.run?.machine.image;
    const theirs = member.watched.status;
    return (
      image?.applied === applied && image.digest === digest && theirs?.lastIndex === applied && theirs.commitIndex === applied
    );
  });
}

function situation(cluster: Cluster): Record<string, unknown> {
  const nodes = cluster.members.map(({ id, fate, run, watched: { status } }) => {
    if (run === undefined || status === undefined) return `${id}: ${fate}`;
    const { role, term, commitIndex, lastIndex, conf, removed } = status;
    const halves = `${conf.voters}|${conf.votersOutgoing}|${conf.learners}`;
    return `${id}: ${role} term ${term} commit ${commitIndex}/${lastIndex} applied ${run.machine.image.applied} conf ${halves}${removed ? ' removed' : ''}`;
  });
  return { waiting: cluster.clients.waiting, nodes };
}
