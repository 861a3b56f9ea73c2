import { SimRandom } from '../../fakes/sim-random.ts';
import type { ExtraFaults } from './extra-faults.ts';
import type { SeparateFaults } from './separate-faults.ts';

/**
 * `core`: the core with every effect carried out at once. `driver`: the real driver. `storage`: the real driver on a storage that the
 * caller provides, which may be a real one on a fake disk.
 */
export type Profile = 'core' | 'driver' | 'storage';

/** Probability per message, in [0, 1]; 0 switches the fault off. */
export interface NetworkFaults {
  readonly drop: number;
  readonly duplicate: number;
  /** Probability that a message is delivered up to ten election timeouts late. */
  readonly heavyTail: number;
  /** Probability that a message is delivered again much later, perhaps to a later incarnation of its receiver. */
  readonly replay: number;
  readonly corrupt: number;
  /** Later messages of a link may overtake earlier ones. */
  readonly reorder: boolean;
  readonly delayMsMax: number;
  /** All messages pass through the codec. */
  readonly codec: boolean;
}

export interface DiskFaults {
  /** Maximum duration of an ordinary sync. */
  readonly syncMsMax: number;
  /** Probability that a sync takes up to two seconds. */
  readonly slow: number;
  /** If true, a crash keeps any subset of the batch that was being written; otherwise a prefix. */
  readonly torn: boolean;
  /** Probability, at a crash, that one slot of the hard state is unreadable at the next start. */
  readonly slotRot: number;
}

/** Sizes that decide how often rare code paths run. */
export interface Sizes {
  readonly windowCount: number;
  readonly windowBytes: number;
  readonly messageBytes: number;
  readonly uncommittedBytes: number;
  readonly committedBytes: number;
  readonly compactAfterEntries: number;
  readonly keepTrailingEntries: number;
  readonly snapshotChunkBytes: number;
  /** Limit of committed entries in memory; runs recorded without it use the product's own limit. */
  readonly memoryBytes?: number;
}

/** Kinds of actions on a cluster, in addition to its clients' requests; a configuration can switch a kind off. */
export const actionKinds = [
  'crash',
  'crashAll',
  'rollingRestart',
  'pause',
  'cutOneWay',
  'cutPair',
  'partition',
  'isolateLeader',
  'electBehind',
  'bridge',
  'flap',
  'heal',
  'slowDisk',
  'hangDisk',
  'syncError',
  'diskFull',
  'bitFlip',
  'loseTail',
  'seal',
  'unseal',
  'transfer',
  'addLearner',
  'promote',
  'demote',
  'removeVoter',
  'removeLeader',
  'replaceVoter',
  'jointChange',
  'wipeAndRejoin',
  'leaveJoint',
  'removeAndReadd',
  'burst',
  'raceSnapshot',
] as const;
export type ActionKind = (typeof actionKinds)[number];

/**
 * One step of a schedule, `atMs` from the start. `pick` chooses nodes when the step is carried out, so that it is meaningful in a smaller
 * cluster too.
 */
export interface Action {
  readonly atMs: number;
  readonly kind: ActionKind;
  readonly pick: number;
  readonly durationMs: number;
}

/** Everything that determines a run. The same configuration and schedule give the same run, event by event. */
export interface SimConfig {
  readonly seed: number;
  readonly profile: Profile;
  /** Events of the first phase, the one with faults. */
  readonly events: number;
  readonly nodes: number;
  readonly clients: number;
  readonly keys: number;
  /** Maximum time that a client waits between two requests. */
  readonly thinkMsMax: number;
  /** Clocks run at rates from 0.9 to 1.1; otherwise all at the same rate. */
  readonly clockSkew: boolean;
  readonly leaseReads: boolean;
  /** How many versions of the wire format nodes may differ by: 1 in a rolling upgrade, 2 where some nodes do not understand each other. */
  readonly skew: 0 | 1 | 2;
  readonly network: NetworkFaults;
  readonly disk: DiskFaults;
  readonly sizes: Sizes;
  readonly schedule: readonly Action[];
  /** See {@link withExtraFaults}. */
  readonly extra?: ExtraFaults;
  readonly separate?: SeparateFaults;
}

const ACTIONS = 600;

/** The fraction of seeds that use a kind of action, where it differs from the default. */
const shares: Partial<Record<ActionKind, number>> = {
  crash: 0.8,
  heal: 0.8,
  crashAll: 0.1,
  rollingRestart: 0.15,
  wipeAndRejoin: 0.15,
};

/**
 * Swarm testing (Groce et al., 2012): each seed enables a random subset of faults and draws its sizes, so that no fault is always hidden
 * behind another.
 */
export function configOf(seed: number, profile: Profile, events: number): SimConfig {
  const random = new SimRandom(seed);
  const on = (share: number): boolean => random.chance(share);
  const rate = (share: number, highest: number): number => (on(share) ? (highest * random.between(1, 10)) / 10 : 0);
  const small = on(0.4);
  // Drawn from a separate random stream, so that all other draws of a seed stay the same.
  const room = new SimRandom(seed ^ 0x4007);
  const kinds = actionKinds.filter((kind) => on(shares[kind] ?? 0.4));
  const paceMs = random.pick([100, 300, 800, 2000]);
  return {
    seed,
    profile,
    events,
    nodes: random.pick([1, 2, 3, 3, 3, 3, 4, 5, 5, 7]),
    clients: random.between(1, 6),
    keys: random.between(1, 4),
    thinkMsMax: random.pick([10, 50, 300]),
    clockSkew: on(0.6),
    leaseReads: on(0.8),
    skew: random.pick([0, 0, 0, 0, 0, 0, 1, 2]),
    network: {
      drop: rate(0.5, 0.2),
      duplicate: rate(0.4, 0.2),
      heavyTail: rate(0.4, 0.05),
      replay: rate(0.3, 0.05),
      corrupt: rate(0.3, 0.05),
      reorder: on(0.6),
      delayMsMax: random.pick([1, 5, 30, 200]),
      codec: on(0.2),
    },
    disk: {
      syncMsMax: random.pick([1, 5, 20, 100]),
      slow: rate(0.3, 0.05),
      torn: on(0.5),
      slotRot: rate(0.4, 0.5),
    },
    sizes: {
      windowCount: small ? random.between(1, 4) : 256,
      windowBytes: small ? random.between(20, 400) : 4 * 2 ** 20,
      messageBytes: small ? random.between(1, 120) : 2 ** 20,
      uncommittedBytes: on(0.3) ? random.between(30, 600) : 64 * 2 ** 20,
      committedBytes: small ? random.between(10, 200) : 2 ** 20,
      compactAfterEntries: on(0.6) ? random.between(5, 60) : 100_000,
      keepTrailingEntries: random.between(0, 10),
      snapshotChunkBytes: random.between(16, 256),
      ...(room.chance(0.2) && { memoryBytes: room.between(50, 600) }),
    },
    schedule: scheduleOf(random, kinds, paceMs),
  };
}

function scheduleOf(random: SimRandom, kinds: readonly ActionKind[], paceMs: number): readonly Action[] {
  if (kinds.length === 0) return [];
  let atMs = 0;
  return Array.from({ length: ACTIONS }, () => {
    atMs += random.below(2 * paceMs) + 1;
    const durationMs = random.pick([50, 300, 1200, 2500, 5000]) + random.below(400);
    return { atMs, kind: random.pick(kinds), pick: random.uint32(), durationMs };
  });
}
