import type { FeatureLevel, LevelRange } from '@transitd/storage-fsm';
import { levelsText, supportsLevel } from '../membership/member-levels.ts';

/** The levels that one member announced last, by name. */
export interface MemberLevels {
  readonly name: string;
  readonly levels: LevelRange;
}

/** Returns the highest level that all members support; the present level if they have no higher one in common. */
export function highestLevel(members: readonly MemberLevels[], present: FeatureLevel): FeatureLevel {
  const highest = Math.min(...members.map(({ levels }) => levels.newest));
  return highest > present && members.every(({ levels }) => supportsLevel(levels, highest)) ? highest : present;
}

/** Returns the members that cannot apply entries under a level. */
const membersBelow = (members: readonly MemberLevels[], level: FeatureLevel): readonly MemberLevels[] =>
  members.filter(({ levels }) => !supportsLevel(levels, level));

/** Returns the members that hold up the next level, which another member supports already. */
export const holdingUp = (members: readonly MemberLevels[], present: FeatureLevel): readonly MemberLevels[] =>
  members.some(({ levels }) => levels.newest > present) ? membersBelow(members, present + 1) : [];

/** The answer to a request to raise the level: the level to raise to, or the reason for the refusal. */
type RaiseVerdict = { readonly to: FeatureLevel } | { readonly refused: string };

/**
 * Decides about a request of an operator.
 * @param wanted - undefined for the highest level that all members support
 * @param members - all members, also sealed and absent ones and non-voters, by what they announced last
 */
export function judgeRaise(
  { wanted, present }: { readonly wanted: FeatureLevel | undefined; readonly present: FeatureLevel },
  members: readonly MemberLevels[],
): RaiseVerdict {
  const to = wanted ?? highestLevel(members, present);
  if (to < present) return { refused: `the cluster is at feature level ${present} already, and the level never falls` };
  const below = membersBelow(members, to);
  if (below.length === 0) return { to };
  const named = below.map(({ name, levels }) => `${name} (${levelsText(levels)})`).join(', ');
  return {
    refused: `these members have not announced that they support feature level ${to}: ${named}. Upgrade or remove them first`,
  };
}

/**
 * Decides when the active node raises the level by itself: once all members have supported a higher one for the configured time. A member
 * that supports less restarts the time, and so does a new leader.
 */
export class AutomaticRaise {
  readonly #afterMs: number;
  #to: FeatureLevel = 0;
  #sinceMs = 0;

  /** @param afterMs - 0 for never */
  constructor(afterMs: number) {
    this.#afterMs = afterMs;
  }

  /** This node has become the active one. */
  leadershipBegins(): void {
    this.#to = 0;
  }

  /**
   * Returns the feature level to raise the cluster to now; undefined if the members support no higher level, or not for long enough yet.
   * @param nowMs - monotonic clock
   */
  due(members: readonly MemberLevels[], present: FeatureLevel, nowMs: number): FeatureLevel | undefined {
    const to = highestLevel(members, present);
    if (to !== this.#to) [this.#to, this.#sinceMs] = [to, nowMs];
    return this.#afterMs > 0 && to > present && nowMs - this.#sinceMs >= this.#afterMs ? to : undefined;
  }
}
