import type { NodeId } from '@transitd/raft-core';
import type { CommittedMembers } from '../membership/membership-list.ts';
import type { SignedList } from '../membership/signed-list.ts';
import type { ClusterClient } from '../transport/cluster-client.ts';
import { committedMembersIn, type HeartbeatRequest, heartbeatReplySchema, intervalIn, signedListIn } from './heartbeat-wire.ts';
import type { Heartbeats } from './heartbeats.ts';
import type { StateDigest } from './state-comparison.ts';

export interface HeartbeatSenderOptions {
  readonly client: Pick<ClusterClient, 'post'>;
  readonly heartbeats: Heartbeats;
  readonly intervalMs: number;
  /** Returns the node to send to; undefined when this node leads, or knows no other member. */
  readonly target: () => NodeId | undefined;
  readonly request: () => HeartbeatRequest;
  /** Called when a heartbeat has ended. @param ms - round-trip time; undefined without an answer, or if the answering node is not active */
  readonly onHeartbeat?: (to: NodeId, ms: number | undefined) => void;
  /** The active node reported its state digest. */
  readonly onState: (state: StateDigest) => void;
  /**
   * The active node refuses the heartbeat because its `cluster_heartbeat_interval` differs from this node's.
   * @param theirsMs - the interval of the active node; undefined if the answer does not report it
   */
  readonly onInterval: (theirsMs: number | undefined) => void;
  /** A node that is not active reported the committed members that it knows. */
  readonly onMembers: (from: NodeId, members: CommittedMembers) => void;
  /** The node sent a newer signed membership list. */
  readonly onList: (from: NodeId, list: SignedList) => void;
  /** A member reported that this node was removed, by the committed entry at this index. */
  readonly onRemoved: (from: NodeId, atIndex: number) => void;
}

/**
 * Sends the heartbeats of a node that does not lead: one in each interval, and one at once after a change. Never sends two at a time.
 */
export class HeartbeatSender {
  readonly #options: HeartbeatSenderOptions;
  #timer: NodeJS.Timeout | undefined;
  #inFlight = false;
  #sendAgain = false;

  constructor(options: HeartbeatSenderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.#send(), this.#options.intervalMs);
    this.sendNow();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Sends a heartbeat at once: the leader or the seal has changed, so earlier answers are out of date. */
  sendNow(): void {
    if (this.#timer === undefined) return;
    this.#sendAgain = this.#inFlight;
    void this.#send();
  }

  async #send(): Promise<void> {
    const { client, heartbeats, intervalMs, target, request, onRemoved, onInterval, onMembers, onList, onState, onHeartbeat } =
      this.#options;
    const to = target();
    if (this.#inFlight || to === undefined) return;
    this.#inFlight = true;
    const sentMs = performance.now();
    try {
      const answer = await client
        .post(to, '/cluster/echo', { json: request(), timeoutMs: intervalMs })
        .catch((error: unknown) => {
          onHeartbeat?.(to, undefined);
          throw error;
        });
      const received = { sentMs, receivedMs: performance.now(), receivedUtcMs: Date.now() };
      onHeartbeat?.(to, answer.status === 200 ? received.receivedMs - sentMs : undefined);
      if (answer.status === 410) onRemoved(to, removedAt(answer.json));
      if (answer.status === 200) {
        const reply = heartbeatReplySchema.parse(answer.json);
        heartbeats.answered(reply, received);
        if (reply.state !== undefined) onState(reply.state);
      } else heartbeats.failed({ sentMs, nowMs: received.receivedMs });
      const list = signedListIn(answer.json);
      if (list !== undefined) onList(to, list);
      if (answer.status === 409) onInterval(intervalIn(answer.json));
      const members = answer.status === 503 ? committedMembersIn(answer.json) : undefined;
      if (members !== undefined) onMembers(to, members);
    } catch {
      heartbeats.failed({ sentMs, nowMs: performance.now() });
    } finally {
      this.#inFlight = false;
      if (this.#sendAgain) {
        this.#sendAgain = false;
        void this.#send();
      }
    }
  }
}

const removedAt = (json: unknown): number =>
  typeof json === 'object' && json !== null && 'atIndex' in json && typeof json.atIndex === 'number' ? json.atIndex : 0;
