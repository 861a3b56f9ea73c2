import type { NodeId } from '@transitd/raft-core';

/**
 * Tracks which members each other member certainly knows: the members at the time of this process's last connection to that member. If all
 * members that a voter knows are replaced while the voter is away, it reaches no member when it returns, unless a member sends it a signed
 * membership list.
 */
export class KnownNodes {
  readonly #known = new Map<NodeId, ReadonlySet<NodeId>>();

  /** @param connected - members to which this process is connected now */
  observe(members: readonly NodeId[], connected: ReadonlySet<NodeId>): void {
    const now = new Set(members);
    for (const id of this.#known.keys()) if (!now.has(id)) this.#known.delete(id);
    for (const id of members) if (connected.has(id)) this.#known.set(id, now);
  }

  /**
   * Returns the unconnected voters that may know none of the other members, including voters that this process never connected to.
   * @param members - the members after the change
   */
  isolated(voters: readonly NodeId[], members: readonly NodeId[], connected: ReadonlySet<NodeId>): readonly NodeId[] {
    return voters.filter((voter) => {
      const known = this.#known.get(voter);
      return !connected.has(voter) && !members.some((id) => id !== voter && known?.has(id));
    });
  }
}
