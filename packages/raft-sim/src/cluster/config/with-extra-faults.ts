import { SimRandom } from '../../fakes/sim-random.ts';
import type { SimConfig } from './config.ts';
import { type ExtraAction, type ExtraFaults, type ExtraKind, endingKinds, extraKinds, laterKinds } from './extra-faults.ts';
import { separateFaults } from './separate-faults.ts';

const ACTIONS = 200;
const LATER_PACE_MS = 6_000;

/** The fraction of seeds that use a kind, where it differs from the default. */
const shares: Partial<Record<ExtraKind, number>> = {
  kill: 0.6,
  killThenPowerLoss: 0.6,
  stopClock: 0.15,
  changeClockRate: 0.3,
  hangDiskPart: 0.3,
};

/** Adds the faults that the configuration's seed draws from the second stream. */
export function withExtraFaults(config: SimConfig): SimConfig {
  const seed = (config.seed ^ 0x2_5ca1e) >>> 0;
  const random = new SimRandom(seed);
  const flushMsMax = random.pick([0, 1, 50, 500]);
  const kinds = extraKinds.filter((kind) => random.chance(shares[kind] ?? 0.4));
  const hasTwoNodes = kinds.includes('leaveLastVoter') && random.chance(0.6);
  const compactsSoon = kinds.some((kind) => kind === 'installBesideFlush' || kind === 'installBesideMark');
  const paceMs = random.pick([300, 800, 2000]);
  const schedule = Array.from({ length: kinds.length === 0 ? 0 : ACTIONS }, (): ExtraAction => {
    const durationMs = random.pick([50, 300, 1200, 2500]) + random.below(400);
    return { afterMs: 1 + random.below(2 * paceMs), kind: random.pick(kinds), pick: random.uint32(), durationMs };
  });
  const { sizes } = config;
  const drawn: SimConfig & { readonly extra: ExtraFaults } = {
    ...config,
    ...(hasTwoNodes ? { nodes: 2 } : {}),
    // These runs have no guard against a clock that stands still: see `SeparateFaults.suspensions`.
    ...(kinds.includes('stopClock') ? { leaseReads: false } : {}),
    ...(compactsSoon ? { sizes: { ...sizes, compactAfterEntries: random.between(5, 20), keepTrailingEntries: 1 } } : {}),
    extra: { seed, flushMsMax, schedule },
  };
  const separate = separateFaults(config);
  return {
    ...(withEndings(drawn) ?? withLaterFaults(drawn)),
    separate,
    ...(separate.suspensions === undefined ? {} : { leaseReads: true }),
  };
}

/** Replaces the second schedule of some seeds by later kinds only: these scenarios need a leader that stays for seconds. */
function withLaterFaults(config: SimConfig & { readonly extra: ExtraFaults }): SimConfig {
  const { seed, extra, sizes } = config;
  const random = new SimRandom((seed ^ 0x3_1a7e5) >>> 0);
  const kinds = laterKinds.filter(() => random.chance(0.25));
  // A full window would hold back the entries that follow the snapshot.
  if (kinds.length === 0 || config.nodes < 3 || sizes.windowCount < 20) return config;
  const schedule = Array.from({ length: ACTIONS }, (): ExtraAction => {
    const afterMs = 500 + random.below(LATER_PACE_MS);
    return { afterMs, kind: random.pick(kinds), pick: random.uint32(), durationMs: 0 };
  });
  const compactsSoon = { compactAfterEntries: random.between(5, 20), keepTrailingEntries: 1 };
  return { ...config, sizes: { ...sizes, ...compactsSoon }, extra: { ...extra, schedule } };
}

/** Returns another second schedule for some seeds: endings of leaders, under short leases. */
function withEndings(config: SimConfig & { readonly extra: ExtraFaults }): SimConfig | undefined {
  const { seed, extra } = config;
  const random = new SimRandom((seed ^ 0x4_0ff5) >>> 0);
  if (config.nodes < 3 || !random.chance(0.3)) return undefined;
  const paceMs = random.pick([200, 500, 1500]);
  const schedule = Array.from({ length: ACTIONS }, (): ExtraAction => {
    const durationMs = random.pick([100, 400, 1500]) + random.below(400);
    return { afterMs: 1 + random.below(2 * paceMs), kind: random.pick(endingKinds), pick: random.uint32(), durationMs };
  });
  const leasesMs = Array.from({ length: 7 }, () => random.pick([150, 150, 150, 400, 800, 0]));
  return {
    ...config,
    leaseReads: true,
    extra: { ...extra, schedule, timing: { heartbeatMs: 50, leasesMs } },
  };
}
