import { type ConfState, decodeConfState, type Entry, type LogIndex, membersOf, type NodeId } from '@transitd/raft-core';

interface Known {
  /** Index of the newest configuration that is included. */
  readonly confIndex: LogIndex;
  readonly members: readonly NodeId[];
  /** The removed nodes, each with the entry that removed it. */
  readonly removed: readonly (readonly [id: NodeId, at: LogIndex])[];
}

/**
 * The nodes that a node's committed entries have removed from the cluster. Removals are permanent, so a tombstone stays even when the state
 * returns to an earlier index. But an entry that is applied again after a crash must not be compared with the members of a later
 * configuration.
 */
export class Tombstones {
  #known: Known;

  constructor(base: { readonly conf: ConfState; readonly confIndex: LogIndex }) {
    this.#known = { confIndex: base.confIndex, members: [...membersOf(base.conf)], removed: [] };
  }

  get members(): ReadonlySet<NodeId> {
    return new Set(this.#known.members);
  }

  get removed(): ReadonlyMap<NodeId, LogIndex> {
    return new Map(this.#known.removed);
  }

  applied({ index, data }: Entry): void {
    if (index <= this.#known.confIndex) return;
    const members = membersOf(decodeConfState(data));
    const gone = this.#known.members.filter((id) => !members.has(id)).map((id) => [id, index] as const);
    this.#known = { confIndex: index, members: [...members], removed: [...this.#known.removed, ...gone] };
  }

  encode(): Buffer {
    return Buffer.from(JSON.stringify(this.#known));
  }

  /** Replaces the tombstones by those that another node sent with its state, if these are newer. */
  received(bytes: Uint8Array): void {
    const sent: Known = JSON.parse(Buffer.from(bytes).toString());
    if (sent.confIndex > this.#known.confIndex) this.#known = sent;
  }
}
