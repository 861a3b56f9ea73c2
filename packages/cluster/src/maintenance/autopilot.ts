import type { Logger } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import type { MembershipList } from '../membership/membership-list.ts';
import type { Storage } from '../ports/storage-port.ts';
import { type AutopilotSettings, changeSettings, readSettings } from './autopilot-settings.ts';
import { type ClusterState, clusterState, deadServer, Stability } from './autopilot-state.ts';
import type { MemberOperations } from './member-operations.ts';

export interface AutopilotParts {
  readonly storage: Storage;
  readonly membershipList: MembershipList;
  /** The records in clear. */
  readonly store: Store;
  readonly operator: MemberOperations;
  readonly log: Logger;
}

/** What the active node makes of the members, and does about those that are dead. */
export class Autopilot {
  readonly #parts: AutopilotParts;
  readonly #stability = new Stability();
  /** The newest view, for figures. */
  #seen: ClusterState | undefined;

  constructor(parts: AutopilotParts) {
    this.#parts = parts;
  }

  /** This node begins to lead. */
  begins(): void {
    this.#stability.clear();
    this.#seen = undefined;
  }

  /** As of the last look; undefined on a node that does not lead. */
  get seen(): ClusterState | undefined {
    return this.#parts.storage.driver.status().ready ? this.#seen : undefined;
  }

  settings(): Promise<AutopilotSettings> {
    return readSettings(this.#parts.store);
  }

  /** @throws RequestError `invalid_request`, StoreError */
  change(told: Partial<AutopilotSettings>): Promise<void> {
    return changeSettings(this.#parts.store, told);
  }

  /** Looks at the members now. @throws StoreError */
  async look(): Promise<ClusterState> {
    return this.#look(await this.settings());
  }

  /** Since when a member has been as healthy, or not, as it is. */
  stableSince(id: number): Date | undefined {
    const utcMs = this.#stability.sinceUtcMs(id);
    return utcMs === undefined ? undefined : new Date(utcMs);
  }

  /** One look, and one dead server less where the settings want that: one at a time, so that each removal is weighed by what is left. */
  async maintenance(): Promise<void> {
    const settings = await this.settings();
    const id = deadServer(this.#look(settings), settings);
    if (id === undefined) return;
    const name = this.#parts.membershipList.member(id)?.name;
    const enough = ({ voters }: { voters: readonly number[] }): boolean =>
      voters.filter((voter) => voter !== id).length >= settings.minQuorum || !voters.includes(id);
    if (await this.#parts.operator.removeNode(id, enough))
      this.#parts.log.warn(
        { node: name },
        'a server was removed that had been dead for longer than dead_server_last_contact_threshold',
      );
  }

  #look(settings: AutopilotSettings): ClusterState {
    const { storage, membershipList } = this.#parts;
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
    this.#seen = state;
    return state;
  }
}
