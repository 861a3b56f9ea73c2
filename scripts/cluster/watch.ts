// Watches the health of the nodes and prints one line for each election and each node that comes back.
import { setTimeout as delay } from 'node:timers/promises';
import type { DevNode } from './dev-node.ts';

const pollMs = 200;
const answerMs = 1000;
/** A node that has no contact for less than this time is only waiting for an election. */
const noContactMs = 3000;

/** Returns the health code of a node; undefined without an answer in time. */
export const healthOf = (address: string): Promise<number | undefined> =>
  fetch(`${address}/v1/sys/health`, { signal: AbortSignal.timeout(answerMs) }).then(
    async (response) => {
      await response.arrayBuffer();
      return response.status;
    },
    () => undefined,
  );

export class Watch {
  readonly #nodes: readonly DevNode[];
  readonly #states = new Map<DevNode, 'down' | 'active' | 'standby' | 'without contact'>();
  readonly #withoutContactSince = new Map<DevNode, number>();
  /** The process of each node that served last. */
  readonly #servedAs = new Map<DevNode, number | undefined>();
  #active: DevNode | undefined;
  #lostMs: number | undefined;
  #isStopped = false;

  constructor(nodes: readonly DevNode[]) {
    this.#nodes = nodes;
    for (const node of nodes)
      node.onProcess = (isRunning) => {
        this.#states.set(node, 'down');
        if (!isRunning && node === this.#active) this.#lost();
      };
  }

  /** The active node that was last seen. */
  get active(): DevNode | undefined {
    return this.#active;
  }

  /** True once each node has served, a line has said so, and the active node runs. */
  get hasSeenAll(): boolean {
    return this.#active?.pid !== undefined && this.#servedAs.size === this.#nodes.length;
  }

  stop(): void {
    this.#isStopped = true;
  }

  async run(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => this.#watch(node)));
  }

  async #watch(node: DevNode): Promise<void> {
    while (!this.#isStopped) {
      const { pid } = node;
      const code = await healthOf(node.address);
      if (this.#isStopped) return;
      // An answer of a process that has ended since then says nothing.
      if (pid === node.pid) this.#seen(node, code);
      await delay(pollMs);
    }
  }

  #seen(node: DevNode, code: number | undefined): void {
    const before = this.#states.get(node) ?? 'down';
    if (code === 474 || code === undefined) {
      if (node === this.#active) this.#lost();
      if (code === undefined) return;
      const since = this.#withoutContactSince.get(node) ?? performance.now();
      this.#withoutContactSince.set(node, since);
      if (before === 'without contact' || performance.now() - since < noContactMs) return;
      this.#states.set(node, 'without contact');
      node.say('has no contact with the active node, so it serves nothing');
      return;
    }
    this.#withoutContactSince.delete(node);
    if (code === 200) {
      if (before !== 'active' || this.#active !== node) this.#becameActive(node);
      // An active node that only answered late was not lost.
      this.#lostMs = undefined;
    } else if (code === 473 && before !== 'standby') {
      this.#states.set(node, 'standby');
      const verb = this.#servedAs.has(node) ? 'is back' : 'is up';
      const isNew = this.#servedAs.get(node) !== node.pid;
      node.say(isNew ? `${verb} as a standby (process ${node.pid})` : 'is a standby now');
      this.#servedAs.set(node, node.pid);
    }
  }

  #becameActive(node: DevNode): void {
    const tookMs = this.#lostMs === undefined ? undefined : performance.now() - this.#lostMs;
    this.#states.set(node, 'active');
    this.#servedAs.set(node, node.pid);
    this.#active = node;
    const after = tookMs === undefined ? '' : `, ${(tookMs / 1000).toFixed(1)} s after the loss of the one before`;
    node.say(`is the active node now (process ${node.pid})${after}`);
  }

  #lost(): void {
    this.#lostMs ??= performance.now();
  }
}
