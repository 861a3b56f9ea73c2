import type { LogIndex, NodeId } from '@transitd/raft-core';
import {
  Cluster,
  configOf,
  disturb,
  holds,
  type SimConfig,
  SimRandom,
  Trace,
  Violation,
  withExtraFaults,
} from '@transitd/raft-sim';
import { readRoleOf } from '../../src/ports/read-role.ts';
import { Heartbeats } from '../../src/standbys/heartbeats.ts';
import { Standbys } from '../../src/standbys/standbys.ts';
import { type Decisions, ServingNode, type ServingWorld } from './serving-node.ts';

export const realDecisions: Decisions = { Standbys, Heartbeats, readRoleOf, heartbeatNeedsLeadership: true };

/** Counts of events in one simulation run. */
export interface Played {
  revocations: number;
  /** Revocations whose answer waited until a standby could no longer serve. */
  waited: number;
  standbyReads: number;
  activeReads: number;
  readonly failure?: string;
}

export interface PlayOptions {
  readonly decisions?: Decisions;
  /** The seed decides by default. */
  readonly nodes?: number;
  readonly intervalMs?: number;
}

/** Resolves after all pending promises, none of which waits for anything outside the simulation. */
const flushPromises = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A key that no simulated client uses. */
const revocationKey = 200;

/**
 * Simulates a cluster whose nodes serve reads from their own state while rights are revoked. After a revocation is answered, no node may
 * serve a state from before it. The fault schedule is that of the consensus simulator. While a turn of a node stalls, the promises of all
 * nodes wait, so no heartbeat is answered meanwhile.
 */
export async function playStandbys(
  seed: number,
  events: number,
  { decisions = realDecisions, nodes, intervalMs }: PlayOptions = {},
): Promise<Played> {
  const config = configFor(seed, events);
  const cluster = new Cluster({ ...config, nodes: nodes ?? config.nodes }, new Trace());
  const world = new World(cluster, { seed, decisions, intervalMs });
  world.start();
  try {
    for (const _event of disturb(cluster)) await flushPromises();
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    return { ...world.played, failure: error.message };
  }
  return world.played;
}

/** Plans fewer concurrent faults than the tests of consensus alone, so that some node can serve. */
function configFor(seed: number, events: number): SimConfig {
  const { extra, ...config } = withExtraFaults(configOf(seed, 'driver', events));
  const every = new SimRandom(seed ^ 0x7a1).pick([1, 4, 12]);
  const schedule = config.schedule.map((action, position) => ({ ...action, atMs: 700 * every * (position + 1) }));
  const further = extra?.schedule.map((action) => ({ ...action, afterMs: every * action.afterMs }));
  return {
    ...config,
    nodes: [5, 3, 2, 5][seed % 4] ?? 3,
    clients: 1,
    thinkMsMax: 300,
    leaseReads: true,
    skew: 0,
    network: { ...config.network, drop: config.network.drop / 4 },
    schedule,
    ...(extra && { extra: { ...extra, schedule: further ?? [] } }),
  };
}

class World implements ServingWorld {
  readonly decisions: Decisions;
  readonly intervalMs: number;
  readonly played: Played = { revocations: 0, waited: 0, standbyReads: 0, activeReads: 0 };
  readonly #cluster: Cluster;
  readonly #random: SimRandom;
  /** Whether machines are suspended more often than the schedule does. */
  readonly #hasSuspensions: boolean;
  readonly #suspensions: SimRandom;
  readonly #nodes = new Map<NodeId, ServingNode>();
  /** Every answered revocation is at or below this index. */
  #revoked: LogIndex = 0;

  constructor(
    cluster: Cluster,
    {
      seed,
      decisions,
      intervalMs,
    }: { readonly seed: number; readonly decisions: Decisions; readonly intervalMs: number | undefined },
  ) {
    this.#cluster = cluster;
    this.#random = new SimRandom(seed ^ 0x57a7d);
    this.#hasSuspensions = seed % 3 !== 0;
    this.#suspensions = new SimRandom(seed ^ 0x5059e);
    this.decisions = decisions;
    const drawn = this.#random.pick([200, 200, 500, 1000]);
    this.intervalMs = intervalMs ?? drawn;
  }

  start(): void {
    const { clock } = this.#cluster;
    clock.every(5, () => this.#meetNodes());
    clock.every(25, () => this.#readEverywhere());
    clock.every(90, () => this.#revoke());
    clock.every(5_000, () => this.#isolateLeaderWithStandby());
    if (this.#hasSuspensions) clock.every(3_000, () => this.#suspendMachine());
  }

  call<Answer>(
    from: ServingNode,
    to: NodeId,
    { timeoutMs, answer }: { readonly timeoutMs: number; answer(node: ServingNode): Promise<Answer> },
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const hears = (task: () => void): void => this.#carry(to, from.id, () => this.#enter(from, task));
      from.run.process.after(timeoutMs, () => reject(new Error('no answer has come')));
      this.#carry(from.id, to, () => {
        const node = this.#nodes.get(to);
        if (node === undefined) return;
        this.#enter(
          node,
          () =>
            void answer(node).then(
              (value) => hears(() => resolve(value)),
              (error: Error) => hears(() => reject(error)),
            ),
        );
      });
    });
  }

  #enter({ member, run }: ServingNode, task: () => void): void {
    this.#cluster.enter(member, run, task);
  }

  /** Delivers with the network's delays, cuts and losses. */
  #carry(from: NodeId, to: NodeId, arrive: () => void): void {
    const { network, config, clock } = this.#cluster;
    const random = this.#random;
    const { drop, delayMsMax, heavyTail } = config.network;
    const delayMs = 0.1 + (random.chance(heavyTail) ? random.below(2_000) : (delayMsMax * random.below(1_000)) / 1_000);
    if (network.isCut(from, to) || random.chance(drop / 2)) return;
    clock.after(delayMs, () => {
      if (!network.isCut(from, to)) arrive();
    });
  }

  #meetNodes(): void {
    for (const member of this.#cluster.members) {
      const { incarnation: run, id } = member;
      if (run === undefined) this.#nodes.delete(id);
      else if (this.#nodes.get(id)?.run !== run) {
        const node = new ServingNode(this, member, run);
        this.#nodes.set(id, node);
        node.start();
      }
    }
  }

  #readEverywhere(): void {
    for (const node of this.#nodes.values()) {
      this.#enter(node, () => {
        const revoked = this.#revoked; // the node may stall while it decides
        const readRole = node.readRole();
        if (readRole === undefined) return;
        this.played[readRole === 'active' ? 'activeReads' : 'standbyReads'] += 1;
        const { applied } = node.run.machine;
        const facts = () => ({ id: node.id, readRole, applied, revoked });
        holds('after a revocation is answered no node serves a state from before it', applied >= revoked, facts);
      });
    }
  }

  /** Isolates a leader with a slow clock and one standby, while the other nodes elect a leader as soon as they may. */
  #isolateLeaderWithStandby(): void {
    const { leader, members, network, clock } = this.#cluster;
    const standby = members.find((member) => member !== leader && member.incarnation !== undefined);
    if (leader === undefined || standby === undefined || !this.#random.chance(0.5)) return;
    const here = [leader, standby];
    for (const member of members) member.clock.setRate(here.includes(member) ? 0.9 : 1.1);
    const links = here.flatMap((one) =>
      members
        .filter((other) => !here.includes(other))
        .flatMap(
          (other) =>
            [
              [one, other],
              [other, one],
            ] as const,
        ),
    );
    for (const [from, to] of links) network.cut(from.id, to.id);
    clock.after(2_500, () => {
      for (const [from, to] of links) network.mend(from.id, to.id);
    });
  }

  /** Suspends a machine for about as long as an answered heartbeat permits reads, or longer; its monotonic clock does not show that. */
  #suspendMachine(): void {
    const random = this.#suspensions;
    if (this.#cluster.isHealed || !random.chance(0.3)) return;
    const { clock, incarnation } = random.pick(this.#cluster.members);
    const durationMs = this.intervalMs * random.between(1, 6);
    clock.stop(durationMs);
    incarnation?.process.pause(durationMs);
  }

  #revoke(): void {
    const active = [...this.#nodes.values()].filter(({ isActive }) => isActive);
    const node = active[this.#random.below(Math.max(1, active.length))];
    if (node === undefined) return;
    const { machine, host, process } = node.run;
    const command = {
      operation: 2 ** 24 + this.played.revocations,
      key: revocationKey,
      request: { kind: 'write', value: 1 },
    } as const;
    const { data } = machine.prepare(command, 20);
    const answer = async (index: LogIndex): Promise<void> => {
      const sinceMs = process.now();
      await node.standbys.confirmed(machine.applied);
      this.played.revocations += 1;
      if (process.now() > sinceMs + this.intervalMs) this.played.waited += 1;
      this.#revoked = Math.max(this.#revoked, index);
    };
    this.#enter(node, () => host.propose(data, (outcome) => void (outcome.kind === 'applied' && answer(outcome.index))));
  }
}
