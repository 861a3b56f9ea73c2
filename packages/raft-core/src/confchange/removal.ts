import type { LogIndex, NodeId } from '../types.ts';
import type { ConfAt } from './conf-history.ts';
import { membersOf } from './conf-state.ts';

/** Whether this node was removed from its cluster, as far as it knows. */
export class Removal {
  readonly #id: NodeId;
  /** Index of the entry that removed it; infinity if an earlier incarnation learned of the removal from another node. */
  #at: LogIndex | undefined;

  constructor(id: NodeId, { wasTold }: { readonly wasTold: boolean }) {
    this.#id = id;
    this.#at = wasTold ? Number.POSITIVE_INFINITY : undefined;
  }

  /** Returns whether this node is removed. The removal is final unless a later configuration names the node again. */
  isInForce(newest: ConfAt): boolean {
    return this.#at !== undefined && !this.#isAddedBy(newest, this.#at);
  }

  note(atIndex: LogIndex): void {
    this.#at = atIndex;
  }

  /**
   * Updates the removal when a configuration is committed: one that names this node ends an earlier removal, and one that removes it starts
   * a new one.
   */
  committed(conf: ConfAt): void {
    if (this.#at !== undefined && this.#isAddedBy(conf, this.#at)) this.#at = undefined;
  }

  #isAddedBy({ index, conf }: ConfAt, at: LogIndex): boolean {
    return index > at && membersOf(conf).has(this.#id);
  }
}
