import type { Logger } from '@transitd/process';
import { type FeatureLevel, type LevelRange, type Replica, StoreError, supportedLevels } from '@transitd/storage-fsm';
import { ClusterError } from '../refusals/cluster-error.ts';
import { AutomaticRaise, highestLevel, holdingUp, judgeRaise, type MemberLevels } from './raise-decision.ts';

/** The feature level as one engine keeps it, and the members by what it knows of them. */
export interface ClusterLevels {
  /** Commits a raise of the level; refused unless this node is the active one. */
  readonly replica: Pick<Replica, 'commit'>;
  /** The level of the cluster, by the state of this node. */
  readonly level: () => FeatureLevel;
  /** Every member but this node, by the levels that it announced last. */
  readonly others: () => readonly MemberLevels[];
  /** Runs a task while no member is admitted that could not follow a raise. @throws what the task throws */
  readonly undisturbed: <T>(task: () => Promise<T>) => Promise<T>;
}

export interface FeatureLevelControlParts {
  readonly levels: ClusterLevels;
  /** The name of this node. */
  readonly self: string;
  /** How long all members must have supported a higher level before the active node raises it by itself, in ms; 0 for never. */
  readonly raiseAfterMs: number;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** The feature level of the cluster, and the levels that its members support, as the active node knows them. */
export interface FeatureLevelStatus {
  readonly level: FeatureLevel;
  /** The highest level that all members support. */
  readonly highest: FeatureLevel;
  /** The levels that this node supports. */
  readonly supported: LevelRange;
  readonly members: readonly MemberLevels[];
  /** Names of the members that do not support the next level; empty if no member supports it. */
  readonly waitsFor: readonly string[];
}

/** Raises the feature level of the cluster, at the request of an operator or by itself. It succeeds only on the active node. */
export class FeatureLevelControl {
  readonly #parts: FeatureLevelControlParts;
  readonly #automatic: AutomaticRaise;

  constructor(parts: FeatureLevelControlParts) {
    this.#parts = parts;
    this.#automatic = new AutomaticRaise(parts.raiseAfterMs);
  }

  get status(): FeatureLevelStatus {
    const level = this.#parts.levels.level();
    const members = this.#members;
    return {
      level,
      highest: highestLevel(members, level),
      supported: supportedLevels,
      members,
      waitsFor: holdingUp(members, level).map(({ name }) => name),
    };
  }

  leadershipBegins(): void {
    this.#automatic.leadershipBegins();
  }

  /**
   * Raises the level. Raising it to the present level changes nothing and succeeds.
   * @param wanted - undefined for the highest level that all members support
   * @returns the level of the cluster
   * @throws ClusterError `invalid_request` while a member has not announced that it supports the level; StoreError
   */
  raise(wanted?: FeatureLevel): Promise<FeatureLevel> {
    const { levels, log } = this.#parts;
    return levels.undisturbed(async () => {
      const present = levels.level();
      const verdict = judgeRaise({ wanted, present }, this.#members);
      if ('refused' in verdict) throw new ClusterError('invalid_request', verdict.refused);
      if (verdict.to === present) return present;
      const { index, outcome } = await levels.replica.commit({ conditions: [], writes: [], raise: verdict.to });
      if (outcome === 'conflict') throw new StoreError('busy', 'the feature level has changed meanwhile; try again');
      log.info(
        { from: present, level: verdict.to, index },
        'raised the feature level: no member can go back to an earlier release',
      );
      return levels.level();
    });
  }

  /** Raises the level if that is due by itself; a periodic task of the active node. @throws as {@link raise} */
  async maintain(): Promise<void> {
    const { levels, nowMs } = this.#parts;
    const due = this.#automatic.due(this.#members, levels.level(), nowMs());
    if (due !== undefined) await this.raise(due);
  }

  get #members(): readonly MemberLevels[] {
    const { levels, self } = this.#parts;
    return [{ name: self, levels: supportedLevels }, ...levels.others()];
  }
}
