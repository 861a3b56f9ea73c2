import type { NodeId } from '@transitd/raft-core';
import type { ToldMembers } from '../membership/membership-list.ts';
import type { SignedList } from '../membership/signed-list.ts';
import type { ClusterClient } from '../transport/cluster-client.ts';
import { type EchoNews, echoAnswer, intervalTold, listShown, membersTold } from './echo-wire.ts';
import type { Heartbeats } from './heartbeats.ts';
import type { StateDigest } from './state-comparison.ts';

export interface EchoSenderOptions {
  readonly client: Pick<ClusterClient, 'post'>;
  readonly heartbeats: Heartbeats;
  readonly intervalMs: number;
  /** Whom to ask; undefined when it is this node itself that leads, or nobody is known. */
  readonly target: () => NodeId | undefined;
  readonly news: () => EchoNews;
  /** One was answered within that time, or with undefined: not, or not by an active node. */
  readonly onEcho?: (to: NodeId, ms: number | undefined) => void;
  /** What the active node's records came to. */
  readonly onState: (state: StateDigest) => void;
  /** The active node has another interval, or does not say which: it never answers this one's echoes. */
  readonly onInterval: (theirsMs: number | undefined) => void;
  /** The one that was asked is not the active node; whom it knows to be members. */
  readonly onMembers: (from: NodeId, told: ToldMembers) => void;
  /** The one that was asked shows a newer signed membership list. */
  readonly onList: (from: NodeId, list: SignedList) => void;
  /** A member says that this node was removed, as of an entry that it knows to be committed. */
  readonly onRemoved: (from: NodeId, atIndex: number) => void;
}

/** The echoes of a node that does not lead: one at a time, one an interval, and one at once when something has changed. */
export class EchoSender {
  readonly #options: EchoSenderOptions;
  #timer: NodeJS.Timeout | undefined;
  #underWay = false;
  #again = false;

  constructor(options: EchoSenderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.#echo(), this.#options.intervalMs);
    this.now();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Another node leads, or this one is unsealed: what was known before is worth little. */
  now(): void {
    if (this.#timer === undefined) return;
    this.#again = this.#underWay;
    void this.#echo();
  }

  async #echo(): Promise<void> {
    const { client, heartbeats, intervalMs, target, news, onRemoved, onInterval, onMembers, onList, onState, onEcho } =
      this.#options;
    const to = target();
    if (this.#underWay || to === undefined) return;
    this.#underWay = true;
    const sentMs = performance.now();
    try {
      const answer = await client.post(to, '/cluster/echo', { json: news(), timeoutMs: intervalMs }).catch((error: unknown) => {
        onEcho?.(to, undefined);
        throw error;
      });
      const received = { sentMs, receivedMs: performance.now(), receivedUtcMs: Date.now() };
      onEcho?.(to, answer.status === 200 ? received.receivedMs - sentMs : undefined);
      if (answer.status === 410) onRemoved(to, removedAt(answer.json));
      if (answer.status === 200) {
        const reply = echoAnswer.parse(answer.json);
        heartbeats.answered(reply, received);
        if (reply.state !== undefined) onState(reply.state);
      } else heartbeats.failed({ sentMs, nowMs: received.receivedMs });
      const list = listShown(answer.json);
      if (list !== undefined) onList(to, list);
      if (answer.status === 409) onInterval(intervalTold(answer.json));
      const told = answer.status === 503 ? membersTold(answer.json) : undefined;
      if (told !== undefined) onMembers(to, told);
    } catch {
      heartbeats.failed({ sentMs, nowMs: performance.now() });
    } finally {
      this.#underWay = false;
      if (this.#again) {
        this.#again = false;
        void this.#echo();
      }
    }
  }
}

const removedAt = (json: unknown): number =>
  typeof json === 'object' && json !== null && 'atIndex' in json && typeof json.atIndex === 'number' ? json.atIndex : 0;
