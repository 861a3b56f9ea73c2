import type { Config } from '@transitd/configuration';
import { type Clock, type Logger, systemClock } from '@transitd/process';
import { type FeatureLevel, type LevelRange, type Replica, StoreError, supportedLevels } from '@transitd/storage-fsm';
import { ClusterError } from '../refusals/cluster-error.ts';
import { AutomaticRaise, highestLevel, holdingUp, judgeRaise, type MemberLevels } from './raise-decision.ts';

/** The feature level as one engine keeps it, and the members by what it knows of them. */
export interface ClusterLevels {
  /** Commits a raise of the level; refused unless this node is the active one. */
  readonly replica: Pick<Replica, 'commit'>;
  /** The level of the cluster, by the state of this node. */
  readonly level: FeatureLevel;
  /** Every member but this node, by the levels that it announced last. */
  readonly others: readonly MemberLevels[];
  /** Runs a task while no member is admitted that could not follow a raise. @throws what the task throws */
  undisturbed<T>(task: () => Promise<T>): Promise<T>;
}

interface FeatureLevelOptions {
  readonly levels: ClusterLevels;
  readonly config: Pick<Config, 'node_id' | 'feature_level_raise_after'>;
  readonly log: Logger;
  /** The clock of the machine, unless replaced. */
  readonly clock?: Pick<Clock, 'nowMs'>;
}

/** The feature level of the cluster, and the levels that its members support, as the active node knows them. */
interface FeatureLevelStatus {
  readonly level: FeatureLevel;
  /** The highest level that all members support. */
  readonly highest: FeatureLevel;
  readonly supported: LevelRange;
  readonly members: readonly MemberLevels[];
  /** Names of the members that do not support the next level; empty if no member supports it. */
  readonly waitsFor: readonly string[];
}

/** Raises the feature level of the cluster, at the request of an operator or by itself. It succeeds only on the active node. */
export class FeatureLevelControl {
  readonly #options: Required<FeatureLevelOptions>;
  readonly #automatic: AutomaticRaise;

  constructor(options: FeatureLevelOptions) {
    this.#options = { clock: systemClock, ...options };
    this.#automatic = new AutomaticRaise(options.config.feature_level_raise_after);
  }

  get status(): FeatureLevelStatus {
    const level = this.#options.levels.level;
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
    const { levels, log } = this.#options;
    return levels.undisturbed(async () => {
      const present = levels.level;
      const verdict = judgeRaise({ wanted, present }, this.#members);
      if ('refused' in verdict) throw new ClusterError('invalid_request', verdict.refused);
      if (verdict.to === present) return present;
      const { index, outcome } = await levels.replica.commit({ raise: verdict.to });
      if (outcome === 'conflict') throw new StoreError('busy', 'the feature level has changed meanwhile; try again');
      log.info(
        { from: present, level: verdict.to, index },
        'raised the feature level: no member can go back to an earlier release',
      );
      return levels.level;
    });
  }

  /** Raises the level if that is due by itself; a periodic task of the active node. @throws as {@link raise} */
  async maintain(): Promise<void> {
    const { levels, clock } = this.#options;
    const due = this.#automatic.due(this.#members, levels.level, clock.nowMs());
    if (due !== undefined) await this.raise(due);
  }

  get #members(): readonly MemberLevels[] {
    const { levels, config } = this.#options;
    return [{ name: config.node_id, levels: supportedLevels }, ...levels.others];
  }
}
