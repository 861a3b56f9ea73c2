import { invariant } from '../invariant.ts';
import { LogDamage } from '../log/log-damage.ts';
import type { Message, SnapshotMeta } from '../types.ts';
import { receiveAppend } from './replication/append.ts';
import { judgeSnapshot, type SnapshotReceiver } from './snapshot-receiver.ts';
import type { RaftState } from './state.ts';

type MessageOf<T extends Message['type']> = Extract<Message, { type: T }>;
type LeaderMessage = MessageOf<'Append' | 'Commit' | 'Heartbeat' | 'SnapOffer'>;

/** Handles a leader's messages on another node (Raft §5.3, §7). */
export class Follower {
  readonly #state: RaftState;
  readonly #snapshots: SnapshotReceiver;

  constructor(state: RaftState, snapshots: SnapshotReceiver) {
    this.#state = state;
    this.#snapshots = snapshots;
  }

  onLeader(message: LeaderMessage): void {
    const { term, leader, clock, nowMs } = this.#state;
    if (message.term < term) {
      this.#answerOldLeader(message);
      return;
    }
    const isKnown = message.term > term || leader === 0 || leader === message.from;
    invariant(isKnown, 'a term has one leader', { term, leader, from: message.from });
    this.#state.becomeFollower({ term: message.term, leader: message.from });
    const leaseMs = message.type === 'Heartbeat' ? message.leaseMs : undefined;
    clock.heardLeader(nowMs, { leader: message.from, term: message.term, leaseMs });
    if (message.type === 'Append') this.#onAppend(message);
    else if (message.type === 'Commit') this.#onCommit(message);
    else if (message.type === 'SnapOffer') this.#onSnapOffer(message);
    else this.#onHeartbeat(message);
  }

  /**
   * Handles the end of the requested snapshot stream. If the log has grown past the snapshot meanwhile, installing the snapshot would drop
   * acknowledged entries.
   */
  snapshotReceived(meta: SnapshotMeta | undefined): boolean {
    const state = this.#state;
    const { from, term, session, meta: offered } = this.#snapshots.received();
    const verdict = meta === undefined ? 'failed' : judgeSnapshot(state.log, state.commitIndex, meta);
    if (meta !== undefined && verdict === 'needed') {
      state.observe('snapshot installed');
      state.install(meta);
      this.#snapshots.install(meta);
    } else if (meta !== undefined) {
      state.observe(verdict === 'held' ? 'snapshot held by the log' : 'snapshot overtaken by the log');
      state.commitTo(meta.index);
    }
    const ok = verdict !== 'failed';
    const index = ok ? state.commitIndex : offered.index;
    const { lastIndex } = state.log;
    // A session is valid only in its leader's term.
    if (term === state.term) {
      state.post({ to: from, session, vouches: ok }, { type: 'SnapResult', index, ok, lastIndex });
    }
    return verdict === 'needed';
  }

  /** Answers with this node's own term, so that the sender adopts it; otherwise a node with a higher term could never rejoin. */
  #answerOldLeader(message: LeaderMessage): void {
    const { lastIndex, lastTerm } = this.#state.log;
    if (message.type === 'SnapOffer') {
      this.#state.answer(message, { type: 'SnapResult', index: message.meta.index, ok: false, lastIndex });
    } else if (message.type === 'Heartbeat') {
      this.#state.answer(message, { type: 'HeartbeatResp', round: message.round, fit: false });
    } else if (message.type === 'Append') {
      const { prevIndex, round } = message;
      const hint = { hintIndex: lastIndex, hintTerm: lastTerm };
      this.#state.answer(message, { type: 'AppendResp', ok: false, prevIndex, ...hint, round });
    }
  }

  /**
   * @throws LogDamage if the leader commits an entry that this log lacks: a leader never sends a node a commit index above what that node
   * has acknowledged
   */
  #onHeartbeat(message: MessageOf<'Heartbeat'>): void {
    const { lastIndex } = this.#state.log;
    if (message.commit > lastIndex)
      throw new LogDamage(
        `The log ends at entry ${lastIndex} but entry ${message.commit} was acknowledged to the leader: it has lost its end.`,
      );
    this.#state.commitTo(message.commit);
    this.#state.answer(message, { type: 'HeartbeatResp', round: message.round, fit: this.#state.fitness === 'fit' });
  }

  #onAppend(message: MessageOf<'Append'>): void {
    const { prevIndex, commit, round } = message;
    const state = this.#state;
    const verdict = receiveAppend(state.log, state.commitIndex, message);
    if (verdict.kind === 'mismatch') {
      const { hintIndex, hintTerm } = verdict;
      state.answer(message, { type: 'AppendResp', ok: false, prevIndex, hintIndex, hintTerm, round });
      return;
    }
    if (verdict.kind === 'meets' && verdict.missing.length > 0 && !state.replicated.hasRoom) {
      state.observe('entries not accepted: no room');
      // Sends no answer: the leader's window fills up, and then the leader sends only the empty Append that follows a heartbeat.
      state.commitTo(Math.min(commit, verdict.match - verdict.missing.length));
      return;
    }
    if (verdict.kind === 'meets') {
      const [first] = verdict.missing;
      if (first !== undefined && first.index <= state.log.lastIndex) state.outbox.withdraw(first.index);
      state.replicated.appendFromLeader(verdict.missing);
      state.commitTo(Math.min(commit, verdict.match));
    }
    const match = verdict.kind === 'meets' ? verdict.match : state.commitIndex;
    state.answer(message, { type: 'AppendResp', ok: true, match, round }, { vouches: true });
  }

  #onCommit({ prevIndex, prevTerm, commit }: MessageOf<'Commit'>): void {
    const { log, commitIndex } = this.#state;
    const verdict = receiveAppend(log, commitIndex, { prevIndex, prevTerm, entries: [] });
    if (verdict.kind === 'meets') this.#state.commitTo(Math.min(verdict.match, commit));
  }

  #onSnapOffer(message: MessageOf<'SnapOffer'>): void {
    const { from, term, session, meta } = message;
    const state = this.#state;
    const verdict = judgeSnapshot(state.log, state.commitIndex, meta);
    if (verdict === 'needed') {
      this.#snapshots.offered({ from, term, session, meta });
      return;
    }
    state.observe(verdict === 'held' ? 'snapshot held by the log' : 'snapshot answered from the log');
    state.commitTo(meta.index);
    const { lastIndex } = state.log;
    state.answer(message, { type: 'SnapResult', index: state.commitIndex, ok: true, lastIndex }, { vouches: true });
  }
}
