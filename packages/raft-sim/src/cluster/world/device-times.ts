import type { Member } from '../node/member.ts';
import type { DiskPart } from '../storage/storage.ts';
import type { World } from './world.ts';

/** The delays of a cluster's disks. */
export class DeviceTimes {
  readonly #cluster: World;

  constructor(cluster: World) {
    this.#cluster = cluster;
  }

  /** Returns the delay of the next sync, in ms; a different pace for the state is one of the extra faults. */
  syncMs(member: Member, part: DiskPart = 'log'): number {
    const { config, isHealed, clock, extraRandom } = this.#cluster;
    const { extra } = config;
    if (extra === undefined || isHealed) return this.#ordinaryMs(member);
    const hangsMs = (member.hangs.get(part) ?? 0) - clock.now();
    if (hangsMs > 0) return hangsMs + extraRandom.below(5);
    return part === 'state' && extra.flushMsMax > 0 ? 0.2 + extraRandom.below(extra.flushMsMax) : this.#ordinaryMs(member);
  }

  /**
   * Returns the delay of the sync of a whole state, in ms: longer than for one batch, but it contains the rest of a hang of the disk only
   * once.
   */
  stateSyncMs(member: Member): number {
    const { isHealed, clock } = this.#cluster;
    const isHanging = !isHealed && (member.hangs.get('log') ?? 0) > clock.now();
    return (isHanging ? 1 : 5) * this.syncMs(member);
  }

  #ordinaryMs({ slowness }: Member): number {
    const { isHealed, random, clock } = this.#cluster;
    const { syncMsMax, slow } = this.#cluster.config.disk;
    if (isHealed) return 0.5 + random.below(3);
    const delayMs = 0.2 + random.below(syncMsMax * 10) / 10;
    const { untilMs, extraMs } = slowness;
    const nowMs = clock.now();
    if (nowMs < untilMs) return delayMs + (extraMs === 0 ? untilMs - nowMs : random.below(extraMs));
    return slow > 0 && random.chance(slow) ? delayMs + random.below(2000) : delayMs;
  }
}
