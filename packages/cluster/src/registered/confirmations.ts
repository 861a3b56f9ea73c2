import type { LogIndex, NodeId } from '@transitd/raft-core';
import type { Pauses } from '../ports/pauses.ts';
import type { PermissionClock } from '../standbys/permission-clock.ts';

interface ConfirmationsOptions {
  /** How long a node may serve a state after it has asked whether the state is the newest, by that node's clock. */
  readonly servesForMs: number;
  readonly clock: Pick<PermissionClock, 'nowMs' | 'leftMs'>;
  /** This node. */
  readonly self: NodeId;
  /** All nodes that may serve from their own state. A node that is not named here serves nothing older than any commit so far. */
  readonly nodes: { readonly ids: readonly NodeId[] };
  /** Asks a node to confirm that it has applied `index`; resolves with its applied index. Any failure rejects. */
  readonly confirm: (id: NodeId, index: LogIndex) => Promise<LogIndex>;
  readonly pauses: Pick<Pauses, 'pause'>;
}

const retryMs = 50;

/**
 * Waits until no node serves an old state. A node may serve for some time after it has asked for the index of the newest commit. If it
 * asked before a commit, that time ends soon after the commit; if it asked later, its state contains the commit. A node that confirms
 * earlier shortens the wait.
 */
export class Confirmations {
  readonly #options: ConfirmationsOptions;

  constructor(options: ConfirmationsOptions) {
    this.#options = options;
  }

  /** Resolves when no other node can serve a state from before `index`, which this node has applied. */
  async confirmed(index: LogIndex): Promise<void> {
    const beganMs = this.#options.clock.nowMs();
    await Promise.all(this.#others.map((id) => this.#confirmedBy(id, index, beganMs)));
  }

  async #confirmedBy(id: NodeId, index: LogIndex, beganMs: number): Promise<void> {
    const { clock, confirm, pauses, servesForMs } = this.#options;
    const leftMs = (): number => clock.leftMs(beganMs, servesForMs);
    while (leftMs() >= 0 && this.#others.includes(id)) {
      const applied = await Promise.race([confirm(id, index).catch(() => undefined), pauses.pause(leftMs() + 1)]);
      if (typeof applied === 'number' && applied >= index) return;
      await pauses.pause(Math.min(retryMs, leftMs() + 1));
    }
  }

  get #others(): readonly NodeId[] {
    const { self, nodes } = this.#options;
    return nodes.ids.filter((id) => id !== self);
  }
}
