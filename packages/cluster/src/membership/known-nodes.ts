import type { NodeId } from '@transitd/raft-core';

/**
 * The members that the log of each other member names for certain: those of the time when this process was connected to it last. A voter that
 * is away while all of them are replaced finds nobody when it returns, unless a member shows it a signed membership list.
 */
export class KnownNodes {
  readonly #known = new Map<NodeId, ReadonlySet<NodeId>>();

  /** @param connected - members to which there is a connection now */
  observe(members: readonly NodeId[], connected: ReadonlySet<NodeId>): void {
    const now = new Set(members);
    for (const id of this.#known.keys()) if (!now.has(id)) this.#known.delete(id);
    for (const id of members) if (connected.has(id)) this.#known.set(id, now);
  }

  /**
   * Voters that are not heard of and are not known to know anybody else who is left; one that this process was never connected to is among them.
   * @param members - those that are left
   */
  stranded(voters: readonly NodeId[], members: readonly NodeId[], heard: ReadonlySet<NodeId>): readonly NodeId[] {
    return voters.filter((voter) => {
      const known = this.#known.get(voter);
      return !heard.has(voter) && !members.some((id) => id !== voter && known?.has(id));
    });
  }
}
