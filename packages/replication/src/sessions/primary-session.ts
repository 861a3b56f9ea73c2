import type { LogIndex } from '@transitd/raft-core';
import { type Cursor, continues, type FeatureLevel, type ReplicationState, sameEpoch } from '@transitd/storage-fsm';
import type { MonotonicClock } from '../roles/fence.ts';
import { type Claim, claimOf, judgeClaim } from '../roles/meeting.ts';
import type { Frame, HelloRefusal } from '../stream/frame.ts';
import { encodeFrame } from '../stream/frame-codec.ts';
import { answerHello } from './answer-hello.ts';
import { type Lag, LagMeter } from './lag-meter.ts';
import { Sender } from './sender.ts';
import type { PrimaryCluster, SessionEnd, SessionLimits, Wire } from './session-ports.ts';
import { stateFrames } from './state-frames.ts';
import { StateTransfer } from './state-transfer.ts';

interface PrimarySessionParts {
  readonly secondary: string;
  readonly cluster: PrimaryCluster;
  /**
   * Commits that this secondary follows, so that the fence counts it; resolves once that is in the log.
   * @throws if its registration is no longer in force
   */
  readonly registered: () => Promise<void>;
  readonly wire: Wire;
  readonly limits: SessionLimits;
  readonly clock: MonotonicClock;
  /** Called once. */
  readonly onEnd: (end: SessionEnd) => void;
}

/**
 * The primary's end of one connection with a secondary. It never sends more than the window ahead of the acknowledgements, and never makes
 * a write wait. The transport calls `received` for each frame and `closed` once. The owner calls `tick` at each heartbeat, and `progress`
 * after entries were applied.
 */
export class PrimarySession {
  readonly #parts: PrimarySessionParts;
  readonly #lag = new LagMeter();
  readonly #startMs: number;
  #heardMs: number;
  #sentMs = Number.NEGATIVE_INFINITY;
  #isGreeted = false;
  /** The secondary was told that this cluster waits for it, or is about to be. */
  #isWelcomed = false;
  /** When the secondary first reported a position of this history. */
  #positionedMs: number | undefined;
  /** The feature level of the secondary when it connected; it never falls. */
  #secondaryLevel: FeatureLevel | undefined;
  #sender: Sender | undefined;
  #transfer: StateTransfer | undefined;
  #acknowledged: Cursor | undefined;
  /** Position of the newest checkpoint that is not acknowledged. */
  #checkpoint: LogIndex | undefined;
  #hasEnded = false;

  constructor(parts: PrimarySessionParts) {
    this.#parts = parts;
    this.#startMs = parts.clock.nowMs();
    this.#heardMs = this.#startMs;
  }

  get secondary(): string {
    return this.#parts.secondary;
  }

  /** `acknowledged` is undefined until the secondary has reported a position on this connection. */
  status(): { readonly acknowledged: Cursor | undefined; readonly lag: Lag; readonly silentMs: number } {
    const nowMs = this.#parts.clock.nowMs();
    return { acknowledged: this.#acknowledged, lag: this.#lag.at(nowMs), silentMs: nowMs - this.#heardMs };
  }

  received(frame: Frame): void {
    if (this.#hasEnded) return;
    this.#heardMs = this.#parts.clock.nowMs();
    if (frame.kind === 'ack') this.#onAck(frame);
    else if (frame.kind === 'staged' && this.#transfer !== undefined) this.#transfer.staged(frame);
    else if ((frame.kind === 'hello' || frame.kind === 'announce') && !this.#isGreeted) {
      this.#isGreeted = true;
      const greeted = frame.kind === 'hello' ? this.#greet(frame) : this.#meet(frame);
      greeted.catch((error: unknown) => this.#end({ why: 'failed', error }));
    } else this.unexpected();
  }

  /** A frame could not be decoded. */
  unexpected(): void {
    this.#end({ why: 'unexpected_frame' });
  }

  closed(): void {
    this.#end({ why: 'closed' });
  }

  /** Sends what was applied since the last call, as far as the secondary keeps up. */
  progress(): void {
    if (this.#hasEnded) return;
    const { cluster, wire, limits, clock } = this.#parts;
    const state = cluster.state();
    if (state === undefined) {
      this.#end({ why: 'not_active' });
      return;
    }
    if (this.#secondaryLevel !== undefined && this.#secondaryLevel < cluster.level()) {
      this.#refuse('level');
      return;
    }
    this.#lag.known(cluster.position(), clock.nowMs());
    if (this.#sender === undefined || wire.unsentBytes > limits.unsentBytesMax) return;
    const frames = this.#sender.frames(state);
    if (frames === 'behind') {
      this.#end({ why: 'behind' });
      return;
    }
    if (frames === 'ended') {
      this.#end({ why: 'epoch_ended' });
      return;
    }
    for (const frame of frames) this.#send(frame);
  }

  tick(): void {
    if (this.#hasEnded) return;
    const { cluster, wire, limits, clock } = this.#parts;
    const stallMs = clock.nowMs() - (this.#transfer?.progressMs ?? clock.nowMs());
    if (clock.nowMs() - this.#heardMs > limits.silentMsMax || stallMs > limits.stallMsMax) {
      this.#end({ why: 'silent' });
      return;
    }
    this.progress();
    const state = cluster.state();
    const isAnswered = this.#sender !== undefined || this.#transfer !== undefined;
    if (this.#hasEnded || state === undefined || !isAnswered || wire.unsentBytes > limits.unsentBytesMax) return;
    this.#transfer?.continue();
    this.#heartbeat(state);
  }

  #heartbeat(state: ReplicationState): void {
    const { cluster, clock } = this.#parts;
    const epoch = state.epochs.at(-1);
    if (epoch === undefined) return;
    const at = { number: epoch.number, id: epoch.id, index: cluster.position() };
    this.#sentMs = clock.nowMs();
    const { restoredAt } = state;
    this.#send({ kind: 'heartbeat', at, sentMs: this.#sentMs, demoted: state.role === 'demoted', restoredAt });
    if (this.#sender?.sent !== at.index || this.#checkpoint !== undefined) return;
    const digest = cluster.digest(at.index);
    if (digest === undefined) return;
    this.#checkpoint = at.index;
    this.#send({ kind: 'checkpoint', at, digest });
  }

  #onAck({ at, echoMs }: Frame & { kind: 'ack' }): void {
    const { cluster, secondary } = this.#parts;
    const isAnswered = this.#sender !== undefined || this.#transfer !== undefined;
    const isEcho = echoMs === undefined || (echoMs >= this.#startMs && echoMs <= this.#sentMs);
    // A position of another history, from before this cluster has sent its own state, shows only that the secondary is alive.
    const own = at !== undefined && continues(cluster.state()?.epochs ?? [], at) ? at : undefined;
    // A position ahead of this cluster's own, or an answer to a heartbeat that was never sent here, cannot be true and must not count as a
    // contact.
    if (!isAnswered || !isEcho || (own !== undefined && own.index > cluster.position())) {
      this.unexpected();
      return;
    }
    if (own !== undefined) {
      this.#acknowledged = own;
      this.#lag.applied(own.index);
      this.#sender?.acknowledged(own.index);
      if (this.#checkpoint !== undefined && own.index >= this.#checkpoint) this.#checkpoint = undefined;
      if (echoMs !== undefined) cluster.answered(secondary, echoMs, own);
      cluster.acknowledged();
      this.#positionedMs ??= this.#parts.clock.nowMs();
      // Most secondaries are sealed by their first state, and say hello again: until then the fence must not wait for them.
      if (this.#sender !== undefined && !this.#isWelcomed && echoMs !== undefined && echoMs > this.#positionedMs)
        this.#welcome().catch((error: unknown) => this.#end({ why: 'failed', error }));
    }
    this.progress();
  }

  /**
   * Answers a hello. That a secondary with a state follows is committed first, and the answer is decided by the state after that.
   */
  async #greet(hello: Frame & { kind: 'hello' }): Promise<void> {
    const { cluster, registered } = this.#parts;
    this.#secondaryLevel = hello.level;
    const decided = () => {
      const state = cluster.state();
      const { successionKey } = cluster;
      const continuesFrom = (at: LogIndex) => cluster.outcomes.continuesFrom(at);
      const facts = { state, level: cluster.level(), continuesFrom, successionKey };
      return state && { state, answer: answerHello(hello, facts) };
    };
    let decision = decided();
    // Without a state it cannot be promoted, and the fence does not wait for it: it says hello again once it has one, or goes on here.
    const canBePromoted = hello.cursor !== undefined;
    if (canBePromoted && (decision?.answer.kind === 'resume' || decision?.answer.kind === 'resynchronize')) {
      await registered();
      if (this.#hasEnded) return;
      decision = decided();
    }
    if (decision === undefined) {
      this.#end({ why: 'not_active' });
      return;
    }
    const { state, answer } = decision;
    const epoch = state.epochs.at(-1);
    if (answer.kind === 'superseded') {
      await cluster.superseded(answer.by);
      this.#end({ why: 'superseded' });
    } else if (answer.kind === 'refuse' || epoch === undefined) {
      if (hello.cursor !== undefined && answer.kind === 'refuse' && answer.reason === 'unproven')
        cluster.unproven(this.secondary, hello.cursor);
      this.#refuse(answer.kind === 'refuse' ? answer.reason : 'not_primary');
    } else if (answer.kind === 'resume') {
      this.#send({ kind: 'nodes', ...cluster.nodes() });
      this.#isWelcomed = true;
      this.#send({ kind: 'welcome', epochs: state.epochs });
      this.#lag.applied(answer.from.index);
      this.#sender = new Sender(cluster.outcomes, { from: answer.from.index, epoch, limits: this.#parts.limits });
      this.progress();
    } else await this.#sendState();
  }

  /** Welcomes a secondary that goes on with the state that it was sent, because it has the keys of that: it was in the set before. */
  async #welcome(): Promise<void> {
    this.#isWelcomed = true;
    await this.#parts.registered();
    const state = this.#parts.cluster.state();
    if (state !== undefined) this.#send({ kind: 'welcome', epochs: state.epochs });
  }

  async #sendState(): Promise<void> {
    const { cluster, limits, wire, clock } = this.#parts;
    const snapshot = await cluster.wholeState();
    const epoch = snapshot?.state.epochs.at(-1);
    if (snapshot === undefined || epoch === undefined) {
      await snapshot?.close();
      this.#end({ why: 'no_state' });
      return;
    }
    this.progress(); // the feature level may have risen since the hello
    const { index } = snapshot;
    const hold = cluster.outcomes.hold(index);
    try {
      this.#transfer = new StateTransfer({ limits, wire, clock, send: (frame) => this.#send(frame) });
      this.#send({ kind: 'nodes', ...cluster.nodes() });
      const rootKey = await cluster.rootKey();
      this.#send({ kind: 'key', rootKey });
      rootKey.fill(0);
      if (this.#hasEnded) return;
      await this.#transfer.run(stateFrames(snapshot, { attempt: cluster.newAttempt(), chunkBytes: limits.frameBytes }));
    } finally {
      if (this.#hasEnded) hold.release();
      await snapshot.close();
    }
    if (this.#hasEnded) hold.release();
    else this.#sender = new Sender(cluster.outcomes, { from: index, epoch, limits, hold });
    this.progress();
  }

  /** Handles the epoch of another cluster that may be a primary. */
  async #meet(claim: Claim): Promise<void> {
    const { cluster, secondary } = this.#parts;
    const { set, epoch } = claim;
    const state = cluster.state();
    const own = state?.epochs.at(-1);
    if (state === undefined || own === undefined || state.set !== set) {
      this.#end({ why: 'not_active' });
      return;
    }
    this.#send({ kind: 'announce', ...claimOf(set, own, cluster.successionKey) });
    const verdict = judgeClaim(state, claim, cluster.successionKey);
    if (verdict === 'proven') await cluster.superseded(epoch);
    if (verdict === 'unproven') cluster.unproven(secondary, epoch);
    this.#end({ why: sameEpoch(own, epoch) || verdict === 'unproven' ? 'closed' : 'superseded' });
  }

  #refuse(reason: HelloRefusal): void {
    this.#send({ kind: 'refusal', reason });
    this.#end({ why: 'refused', reason });
  }

  #send(frame: Frame): void {
    if (!this.#hasEnded) this.#parts.wire.send(encodeFrame(frame));
  }

  #end(end: SessionEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#transfer?.end();
    this.#sender?.close();
    this.#parts.wire.end();
    this.#parts.onEnd(end);
  }
}
