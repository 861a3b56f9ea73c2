import type { Logger } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import type { MembershipList } from '../membership/membership-list.ts';
import type { Storage } from '../ports/storage-port.ts';
import { type AutopilotSettings, changeSettings, readSettings } from './autopilot-settings.ts';
import { type ClusterState, clusterState, deadServer, Stability } from './autopilot-state.ts';
import type { MemberOperations } from './member-operations.ts';

interface AutopilotOptions {
  readonly storage: Storage;
  readonly membershipList: MembershipList;
  /** Store of the decrypted records. */
  readonly store: Store;
  readonly operator: MemberOperations;
  readonly log: Logger;
}

/** Observes the health of the members on the active node, and removes dead ones if the settings say so. */
export class Autopilot {
  readonly #options: AutopilotOptions;
  readonly #stability = new Stability();
  /** Health of the cluster as of the last round, for metrics. */
  #latest: ClusterState | undefined;

  constructor(options: AutopilotOptions) {
    this.#options = options;
  }

  /** Call this when this node becomes the leader. */
  leadershipBegins(): void {
    this.#stability.clear();
    this.#latest = undefined;
  }

  /** The state as of the last evaluation; undefined on a node that does not lead. */
  get latestState(): ClusterState | undefined {
    return this.#options.storage.driver.status().ready ? this.#latest : undefined;
  }

  settings(): Promise<AutopilotSettings> {
    return readSettings(this.#options.store);
  }

  /** @throws ClusterError `invalid_request`, StoreError */
  change(settings: Partial<AutopilotSettings>): Promise<void> {
    return changeSettings(this.#options.store, settings);
  }

  /** Returns the present state of the members. @throws StoreError */
  async evaluate(): Promise<ClusterState> {
    return this.#evaluate(await this.settings());
  }

  /** Returns since when a member has been healthy or unhealthy. */
  stableSince(id: number): Date | undefined {
    const utcMs = this.#stability.sinceUtcMs(id);
    return utcMs === undefined ? undefined : new Date(utcMs);
  }

  /** Evaluates the members and removes at most one dead server, so that the next removal is decided with the members that are left. */
  async maintenance(): Promise<void> {
    const settings = await this.settings();
    const id = deadServer(this.#evaluate(settings), settings);
    if (id === undefined) return;
    const name = this.#options.membershipList.member(id)?.name;
    const enough = ({ voters }: { voters: readonly number[] }): boolean =>
      voters.filter((voter) => voter !== id).length >= settings.minQuorum || !voters.includes(id);
    if (await this.#options.operator.removeNode(id, enough))
      this.#options.log.warn(
        { node: name },
        'autopilot removed a server that had been dead for longer than dead_server_last_contact_threshold',
      );
  }

  #evaluate(settings: AutopilotSettings): ClusterState {
    const { storage, membershipList } = this.#options;
    const { conf, termStartIndex = Number.POSITIVE_INFINITY } = storage.driver.consensus();
    const state = clusterState(
      {
        status: storage.driver.status(),
        termStartIndex,
        conf,
        membership: membershipList.membership,
        peers: storage.driver.peers(),
      },
      settings,
    );
    this.#stability.observe(state, Date.now());
    this.#latest = state;
    return state;
  }
}
