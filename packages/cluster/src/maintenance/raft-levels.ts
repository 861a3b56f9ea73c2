import type { FeatureLevel, Replica } from '@transitd/storage-fsm';
import { ConfigurationChanges } from '../membership/configuration-changes.ts';
import { decodeMembership } from '../membership/membership.ts';
import { Pauses } from '../ports/pauses.ts';
import type { Storage } from '../ports/storage-port.ts';
import type { Standbys } from '../standbys/standbys.ts';
import type { ClusterLevels } from './feature-level-control.ts';
import type { MemberLevels } from './raise-decision.ts';

const noReports: Pick<Standbys, 'report'> = { report: () => undefined };

/**
 * The level in the log, and the members of the configuration in force. A member that has not been heard in this term counts by its entry in
 * the member list.
 */
export class RaftLevels implements ClusterLevels {
  readonly #storage: Pick<Storage, 'driver' | 'machine' | 'replica'>;
  readonly #changes: Pick<ConfigurationChanges, 'between'>;
  readonly #standbys: Pick<Standbys, 'report'>;

  /** A node that no other node can join passes its storage only. */
  constructor(
    storage: Pick<Storage, 'driver' | 'machine' | 'replica'>,
    changes: Pick<ConfigurationChanges, 'between'> = new ConfigurationChanges(storage.driver, new Pauses()),
    standbys: Pick<Standbys, 'report'> = noReports,
  ) {
    this.#storage = storage;
    this.#changes = changes;
    this.#standbys = standbys;
  }

  get replica(): Pick<Replica, 'commit'> {
    return this.#storage.replica;
  }

  get level(): FeatureLevel {
    return this.#storage.machine.featureLevel;
  }

  get others(): readonly MemberLevels[] {
    const { driver } = this.#storage;
    const { nodeId } = driver.status();
    return decodeMembership(driver.consensus().conf.context)
      .members.filter(({ id }) => id !== nodeId)
      .map(({ id, name, levels }) => ({ name, levels: this.#standbys.report(id)?.levels ?? levels }));
  }

  /** No node may be admitted between the decision and the entry: it might not support the new level. */
  undisturbed<T>(task: () => Promise<T>): Promise<T> {
    return this.#changes.between(task);
  }
}
