import { RequestError } from '@transitd/http';
import type { Logger } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { type FeatureLevel, type LevelRange, supportedLevels } from '@transitd/storage-fsm';
import type { ConfigurationChanges } from '../membership/configuration-changes.ts';
import { unannouncedLevels } from '../membership/member-levels.ts';
import { decodeMembership, type Membership } from '../membership/membership.ts';
import type { Storage } from '../ports/storage-port.ts';
import { AutomaticRaise, highestLevel, holdingUp, judgeRaise, type MemberLevels } from './raise-decision.ts';

export interface FeatureLevelControlParts {
  readonly storage: Pick<Storage, 'driver' | 'machine' | 'replica'>;
  readonly changes: Pick<ConfigurationChanges, 'between'>;
  /** Returns the levels that a member has announced in this term; undefined for a member that has not been heard. */
  readonly announced: (id: NodeId) => LevelRange | undefined;
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
    const { driver, machine } = this.#parts.storage;
    const level = machine.featureLevel;
    const members = this.#members(membershipOf(driver));
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
   * @throws RequestError `invalid_request` while a member has not announced that it supports the level; StoreError
   */
  raise(wanted?: FeatureLevel): Promise<FeatureLevel> {
    const { storage, changes, log } = this.#parts;
    // No node may be admitted between the decision and the entry: it might not support the new level.
    return changes.between(async (membership) => {
      const present = storage.machine.featureLevel;
      const verdict = judgeRaise({ wanted, present }, this.#members(membership));
      if ('refused' in verdict) throw new RequestError('invalid_request', verdict.refused);
      if (verdict.to === present) return present;
      const { index } = await storage.replica.commit({ conditions: [], writes: [], raise: verdict.to });
      log.info(
        { from: present, level: verdict.to, index },
        'raised the feature level: no member can go back to an earlier release',
      );
      return storage.machine.featureLevel;
    });
  }

  /** Raises the level if that is due by itself; a periodic task of the active node. @throws as {@link raise} */
  async maintain(): Promise<void> {
    const { storage, nowMs } = this.#parts;
    const members = this.#members(membershipOf(storage.driver));
    const due = this.#automatic.due(members, storage.machine.featureLevel, nowMs());
    if (due !== undefined) await this.raise(due);
  }

  /** Every member, this node included. A member that has not been heard in this term counts by its entry in the member list. */
  #members(membership: Membership): readonly MemberLevels[] {
    const { announced, self, storage } = this.#parts;
    const { nodeId } = storage.driver.status();
    const others = membership.members
      .filter(({ id }) => id !== nodeId)
      .map(({ id, name, levels }) => ({ name, levels: announced(id) ?? levels ?? unannouncedLevels }));
    return [{ name: self, levels: supportedLevels }, ...others];
  }
}

const membershipOf = (driver: Storage['driver']): Membership => decodeMembership(driver.consensus().conf.context);
