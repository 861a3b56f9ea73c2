import type { ConfAt } from '../../confchange/conf-history.ts';
import { membersOf } from '../../confchange/conf-state.ts';
import { HistoryConflict } from '../../log/history-conflict.ts';
import type { LogView } from '../../log/log-view.ts';
import type { Entry, LogIndex, MessageBody, NodeId, SnapshotMeta } from '../../types.ts';
import type { Observe } from '../contract/coverage-events.ts';
import type { RaftLimits } from '../contract/limits.ts';
import type { LogReadRequest } from '../contract/raft-core.ts';
import { Progress } from './progress.ts';

/** The interface of a node that its parts, such as replication, may use while it leads. */
export interface LeaderNode {
  readonly id: NodeId;
  readonly limits: RaftLimits;
  readonly log: LogView;
  readonly observe: Observe;
  commitIndex(): LogIndex;
  /** Returns the description of the state that is durable in the state machine. */
  durableSnapshot(): SnapshotMeta;
  post(to: NodeId, session: number, body: MessageBody): void;
}

/** A leader's side of log replication (Raft §5.3): what to send to each peer, and what the answers show. */
export class Replication {
  readonly #node: LeaderNode;
  /** Ascending by id, so that equal inputs give equal outputs. */
  #peers: Progress[] = [];
  #sessions = 0;
  #reads: LogReadRequest[] = [];

  constructor(node: LeaderNode) {
    this.#node = node;
  }

  get peers(): readonly Progress[] {
    return this.#peers;
  }

  peer(id: NodeId): Progress | undefined {
    return this.#peers.find((peer) => peer.id === id);
  }

  /**
   * Follows the configuration in force. Promotion and demotion keep a Progress; removed peers still receive entries for a while,
   * best-effort.
   */
  configure({ conf, index }: ConfAt, { next, nowMs }: { readonly next: LogIndex; readonly nowMs: number }): void {
    const members = membersOf(conf);
    for (const peer of this.#peers) if (!members.has(peer.id)) peer.leaving ??= { confIndex: index, untilMs: undefined };
    // A peer that returns gets a new session, so that answers from before its removal do not count.
    const stays = this.#peers.filter((peer) => !(members.has(peer.id) && peer.leaving !== undefined));
    const known = new Set(stays.map(({ id }) => id));
    const joined = [...members].filter((id) => id !== this.#node.id && !known.has(id)).sort((a, b) => a - b);
    const added = joined.map((id) => {
      this.#sessions += 1;
      return new Progress(id, { session: this.#sessions, next, nowMs }, this.#node.limits);
    });
    this.#peers = [...stays, ...added].sort((a, b) => a.id - b.id);
  }

  /**
   * Begins a round: sends a heartbeat to every peer and permits the next probe. The heartbeat carries the commit index, at most up to the
   * entry where the peer's log is known to match.
   */
  heartbeat(round: number, { isTimed, nowMs }: { readonly isTimed: boolean; readonly nowMs: number }): void {
    for (const peer of this.#peers) {
      const commit = Math.min(peer.match, this.#node.commitIndex());
      peer.sentCommit = Math.max(peer.sentCommit, commit);
      this.#post(peer, { type: 'Heartbeat', commit, round, leaseMs: Math.ceil(this.#node.limits.leaseMs) });
      if (!isTimed) continue;
      peer.paused = false;
      peer.mayNudge = true;
      const { offered } = peer;
      if (offered !== undefined && nowMs - offered.atMs >= this.#node.limits.electionMs) this.#offer(peer, nowMs);
    }
  }

  /** Sends each peer the entries that it lacks, as far as its window allows. */
  replicate(round: number, nowMs: number): void {
    for (const peer of this.#peers) this.#replicateTo(peer, round, nowMs);
  }

  /** Handles the answer to a heartbeat. If the peer should have acknowledged more, asks for its position, even when its window is full. */
  nudge(peer: Progress, round: number): void {
    const { log, observe } = this.#node;
    if (!peer.mayNudge || peer.state !== 'replicate' || peer.readingFrom !== undefined || peer.match >= log.lastIndex) return;
    peer.mayNudge = false;
    if (peer.inflight.isFull) observe('empty Append sent through a full window');
    if (peer.inflight.count > 0 && this.#reaches(peer)) this.#append(peer, [], round);
  }

  acknowledged(peer: Progress, index: LogIndex): boolean {
    const { log, observe } = this.#node;
    if (index > log.lastIndex)
      throw new HistoryConflict(
        `node ${peer.id} has entry ${index}, and the log of its leader, this node, ends at ${log.lastIndex}`,
      );
    const { offered, match } = peer;
    const isProgress = peer.acknowledged(index, log.baseIndex + 1);
    if (offered !== undefined && isProgress && index < offered.index)
      observe('an acknowledgement below the snapshot ended its offer');
    if (!isProgress && index < match) observe('stale acknowledgement ignored');
    return isProgress;
  }

  rejected(
    peer: Progress,
    { prevIndex, hintIndex, hintTerm }: { prevIndex: LogIndex; hintIndex: LogIndex; hintTerm: number },
  ): void {
    const { log, observe } = this.#node;
    // The peer cannot have this leader's entries of terms later than the hint's term.
    const candidate = log.lastAtMost({ index: hintIndex, term: hintTerm });
    if (!peer.rejected(prevIndex, candidate)) observe('stale rejection ignored');
    else if (peer.next < prevIndex) observe('a rejection skipped a whole term');
  }

  /** Returns to probing because the snapshot could not be sent, or was not accepted. */
  snapshotFailed(peer: Progress): void {
    if (peer.state !== 'snapshot') return;
    peer.probe();
    peer.paused = true;
  }

  takeReads(): readonly LogReadRequest[] {
    const reads = this.#reads;
    this.#reads = [];
    return reads;
  }

  /**
   * Sends old entries that were read for a peer, or drops them if the peer no longer needs exactly these. The entries of an earlier request
   * may arrive while the peer waits for others.
   */
  logRead(peer: Progress, entries: readonly Entry[], round: number): void {
    const { log, observe } = this.#node;
    const isAwaited = peer.readingFrom === entries[0]?.index;
    if (isAwaited && peer.readingFrom === peer.next && this.#reaches(peer) && entries.every((entry) => log.holds(entry))) {
      observe('old entries read for a peer');
      for (let rest = entries; rest.length > 0 && !peer.inflight.isFull; ) {
        const part = withinBytes(rest, this.#node.limits.messageBytesMax);
        this.#append(peer, part, round);
        rest = rest.slice(part.length);
      }
    } else {
      observe('old entries for a peer dropped after the read');
    }
    if (isAwaited) peer.readingFrom = undefined;
  }

  /** Drops removed peers that know of their removal, or had enough time to learn it. */
  dropRemoved(nowMs: number): void {
    const commitIndex = this.#node.commitIndex();
    this.#peers = this.#peers.filter((peer) => {
      const { leaving } = peer;
      if (leaving === undefined || commitIndex < leaving.confIndex) return true;
      leaving.untilMs ??= nowMs + 2 * this.#node.limits.electionMs;
      const knows = peer.match >= leaving.confIndex && peer.sentCommit >= leaving.confIndex;
      return !knows && nowMs < leaving.untilMs;
    });
  }

  #replicateTo(peer: Progress, round: number, nowMs: number): void {
    const { log, limits, observe } = this.#node;
    while (peer.state !== 'snapshot' && peer.readingFrom === undefined) {
      if (!this.#reaches(peer)) {
        if (peer.leaving === undefined && !peer.paused) this.#offer(peer, nowMs);
        return;
      }
      const inMemory = peer.next >= log.memoryFirst;
      if (peer.state === 'probe') {
        if (peer.paused) return;
        peer.paused = true;
        const probed = inMemory ? { lo: peer.next, hi: log.lastIndex } : undefined;
        this.#append(peer, probed === undefined ? [] : log.inMemory({ ...probed, maxBytes: limits.messageBytesMax }), round);
        return;
      }
      if (peer.next > log.lastIndex) {
        this.#tellCommit(peer);
        return;
      }
      if (peer.inflight.isFull) {
        observe('window full');
        return;
      }
      if (!inMemory) {
        peer.readingFrom = peer.next;
        this.#reads.push({ for: peer.id, lo: peer.next, hi: log.memoryFirst - 1 });
        return;
      }
      this.#append(peer, log.inMemory({ lo: peer.next, hi: log.lastIndex, maxBytes: limits.messageBytesMax }), round);
    }
  }

  #tellCommit(peer: Progress): void {
    const prevIndex = peer.next - 1;
    const commit = Math.min(this.#node.commitIndex(), prevIndex);
    if (commit <= peer.sentCommit) return;
    this.#post(peer, { type: 'Commit', prevIndex, prevTerm: this.#node.log.termAt(prevIndex), commit });
    peer.sentCommit = commit;
  }

  /** Returns whether the log still knows the entry before the peer's next one. */
  #reaches(peer: Progress): boolean {
    return peer.next - 1 >= this.#node.log.baseIndex;
  }

  #append(peer: Progress, entries: readonly Entry[], round: number): void {
    const prevIndex = peer.next - 1;
    const end = prevIndex + entries.length;
    const commit = this.#node.commitIndex();
    this.#post(peer, { type: 'Append', prevIndex, prevTerm: this.#node.log.termAt(prevIndex), commit, entries, round });
    peer.sentCommit = Math.max(peer.sentCommit, Math.min(commit, end));
    if (peer.state === 'replicate' && entries.length > 0) peer.sent(end, bytesOf(entries));
  }

  #offer(peer: Progress, nowMs: number): void {
    const meta = this.#node.durableSnapshot();
    if (peer.state === 'snapshot') peer.offeredAgain(nowMs);
    else peer.offerSnapshot(meta.index, nowMs);
    this.#node.observe('snapshot offered');
    this.#post(peer, { type: 'SnapOffer', meta });
  }

  #post(peer: Progress, body: MessageBody): void {
    this.#node.post(peer.id, peer.session, body);
  }
}

const bytesOf = (entries: readonly Entry[]): number => entries.reduce((sum, { data }) => sum + data.length, 0);

/** Returns the first entries within `bytesMax` of payload, at least one. */
function withinBytes(entries: readonly Entry[], bytesMax: number): readonly Entry[] {
  let bytes = 0;
  const tooMany = entries.findIndex(({ data }, position) => {
    bytes += data.length;
    return position > 0 && bytes > bytesMax;
  });
  return tooMany < 0 ? entries : entries.slice(0, tooMany);
}
