import { type LogIndex, type NodeId, outlasting } from '@transitd/raft-core';

export interface ConfirmationsParts {
  /** How long a node may serve a state after it has asked whether the state is the newest, by that node's clock. */
  readonly servesForMs: number;
  readonly nowMs: () => number;
  /** The other nodes that may serve from their own state. A node that is not named here serves nothing older than any commit so far. */
  readonly others: () => readonly NodeId[];
  /** Asks a node to confirm that it has applied `index`; resolves with its applied index. Any failure rejects. */
  readonly confirm: (id: NodeId, index: LogIndex) => Promise<LogIndex>;
  /** Resolves after about this time. */
  readonly pause: (ms: number) => Promise<void>;
}

const retryMs = 50;

/**
 * Waits until no node serves an old state. A node may serve for some time after it has asked for the index of the newest commit. If it
 * asked before a commit, that time ends soon after the commit; if it asked later, its state contains the commit. A node that confirms
 * earlier shortens the wait.
 */
export class Confirmations {
  readonly #parts: ConfirmationsParts;

  constructor(parts: ConfirmationsParts) {
    this.#parts = parts;
  }

  /** Resolves when no other node can serve a state from before `index`, which this node has applied. */
  async confirmed(index: LogIndex): Promise<void> {
    const { nowMs, servesForMs, others } = this.#parts;
    const endMs = nowMs() + outlasting(servesForMs);
    await Promise.all(others().map((id) => this.#confirmedBy(id, index, endMs)));
  }

  async #confirmedBy(id: NodeId, index: LogIndex, endMs: number): Promise<void> {
    const { nowMs, others, confirm, pause } = this.#parts;
    while (nowMs() <= endMs && others().includes(id)) {
      const applied = await Promise.race([confirm(id, index).catch(() => undefined), pause(endMs - nowMs() + 1)]);
      if (typeof applied === 'number' && applied >= index) return;
      await pause(Math.min(retryMs, endMs - nowMs() + 1));
    }
  }
}
