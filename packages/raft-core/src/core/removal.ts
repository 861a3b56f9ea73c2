import type { ConfAt } from '../confchange/conf-history.ts';
import { membersOf } from '../confchange/conf-state.ts';
import type { LogIndex, NodeId } from '../types.ts';

/** Whether this node was taken out of its cluster, as far as it knows. */
export class Removal {
  readonly #id: NodeId;
  /** The entry that did it; above all of them if it was told in an earlier run. */
  #at: LogIndex | undefined;

  constructor(id: NodeId, { wasTold }: { readonly wasTold: boolean }) {
    this.#id = id;
    this.#at = wasTold ? Number.POSITIVE_INFINITY : undefined;
  }

  /** It is no member, and that is final unless a later configuration names it again. */
  isInForce(newest: ConfAt): boolean {
    return this.#at !== undefined && !this.#isAddedBy(newest, this.#at);
  }

  note(atIndex: LogIndex): void {
    this.#at = atIndex;
  }

  /** It is over once a later configuration that names this node is committed: a new one counts from its own commit on. */
  committed(conf: ConfAt): void {
    if (this.#at !== undefined && this.#isAddedBy(conf, this.#at)) this.#at = undefined;
  }

  #isAddedBy({ index, conf }: ConfAt, at: LogIndex): boolean {
    return index > at && membersOf(conf).has(this.#id);
  }
}
