import { type Cursor, cursorOf, type ReplicationState, sameEpoch } from '@transitd/storage-fsm';
import type { MonotonicClock } from '../roles/fence.ts';
import { type Claim, claimOf, judgeClaim } from '../roles/meeting.ts';
import type { Frame } from '../stream/frame.ts';
import { encodeFrame } from '../stream/frame-codec.ts';
import { Follower, type FollowerAction } from './follower.ts';
import { type Lag, LagMeter } from './lag-meter.ts';
import type { Proposed, SecondaryCluster, SessionEnd, SessionLimits, Wire } from './session-ports.ts';

interface SecondarySessionParts {
  readonly cluster: SecondaryCluster;
  readonly wire: Wire;
  readonly limits: SessionLimits;
  readonly clock: MonotonicClock;
  /** Called once. */
  readonly onEnd: (end: SessionEnd) => void;
}

export interface SecondaryStatus {
  /** The primary has answered the hello. */
  readonly isWelcome: boolean;
  /**
   * True once this secondary has everything that the primary had when the connection began, and when it was welcomed. Before that, the age
   * in `lag` is too low.
   */
  readonly hasCaughtUp: boolean;
  readonly lag: Lag;
  /** Time since a frame arrived. */
  readonly silentMs: number;
}

/**
 * Number of frames that may arrive beyond the window while a step is being committed. Heartbeats do not count: they are answered at once.
 */
const otherFramesMax = 8;

/**
 * The secondary's end of one connection with its primary. It sends a hello at once. If this cluster is a primary itself, it announces its
 * epoch instead.
 */
export class SecondarySession {
  readonly #parts: SecondarySessionParts;
  readonly #lag = new LagMeter();
  readonly #follower: Follower;
  #heardMs: number;
  /** The primary has answered the hello. */
  #isWelcome = false;
  /** The primary waits for this cluster: it has sent a `welcome`. */
  #isAwaited = false;
  /** The position of the primary's first heartbeat on this connection, and of the first one after the welcome. */
  #firstHeard: Cursor | undefined;
  #hasCaughtUp = false;
  #hasEnded = false;

  constructor(parts: SecondarySessionParts) {
    const { cluster, limits, clock } = parts;
    this.#parts = parts;
    this.#heardMs = clock.nowMs();
    this.#follower = new Follower(cluster, limits.framesMax + otherFramesMax);
    const state = cluster.state();
    const epoch = state?.epochs.at(-1);
    this.#lag.applied(state?.index ?? 0);
    if (state === undefined) this.#end({ why: 'not_active' });
    else if (state.role === 'secondary') this.#send(this.#follower.hello());
    else if (epoch === undefined) this.#end({ why: 'not_active' });
    else this.#send({ kind: 'announce', ...claimOf(state.set, epoch, cluster.successionKey) });
  }

  status(): SecondaryStatus {
    const nowMs = this.#parts.clock.nowMs();
    const [isWelcome, hasCaughtUp] = [this.#isWelcome, this.#hasCaughtUp];
    return { isWelcome, hasCaughtUp, lag: this.#lag.at(nowMs), silentMs: nowMs - this.#heardMs };
  }

  received(frame: Frame): void {
    if (this.#hasEnded) return;
    const { cluster, clock } = this.#parts;
    this.#heardMs = clock.nowMs();
    const state = cluster.state();
    if (state === undefined) {
      this.#end({ why: 'not_active' });
      return;
    }
    if (frame.kind === 'announce') {
      this.#meet(frame, state);
      return;
    }
    if (state.role !== 'secondary') {
      this.#end({ why: 'not_active' });
      return;
    }
    if (frame.kind === 'heartbeat') this.#heartbeat(frame, state);
    else if (frame.kind === 'nodes') cluster.nodes({ addresses: frame.addresses, authorities: frame.authorities });
    else if (frame.kind === 'key') cluster.rootKey(frame.rootKey);
    else if (frame.kind === 'refusal') this.#end({ why: 'refused', reason: frame.reason });
    else if (frame.kind === 'hello' || frame.kind === 'ack' || frame.kind === 'staged') this.unexpected();
    else {
      if (frame.kind === 'welcome') this.#awaited();
      if (frame.kind === 'state') cluster.receiving(frame.epochs);
      this.#isWelcome ||= frame.kind === 'welcome' || frame.kind === 'state';
      if (frame.kind === 'outcome') this.#lag.known(frame.to, clock.nowMs());
      this.#act(this.#follower.received(frame));
    }
  }

  /** Handles a frame that could not be decoded. */
  unexpected(): void {
    this.#end({ why: 'unexpected_frame' });
  }

  closed(): void {
    this.#end({ why: 'closed' });
  }

  tick(): void {
    const { limits, clock } = this.#parts;
    if (clock.nowMs() - this.#heardMs > limits.silentMsMax) this.#end({ why: 'silent' });
    else if (this.#parts.cluster.state() === undefined) this.#end({ why: 'not_active' });
  }

  #heartbeat({ at, sentMs, demoted, restoredAt }: Frame & { kind: 'heartbeat' }, state: ReplicationState): void {
    const { cluster, clock } = this.#parts;
    this.#lag.known(at.index, clock.nowMs());
    this.#firstHeard ??= at;
    this.#noteApplied(state);
    cluster.heard({ at, demoted, restoredAt });
    if (!cluster.mayAnswer()) return;
    cluster.answered(clock.nowMs());
    this.#send({ kind: 'ack', at: cursorOf(state), echoMs: sentMs });
  }

  /** The primary that this cluster followed before its promotion may have been promoted again. */
  #meet(claim: Claim, state: ReplicationState): void {
    const { cluster } = this.#parts;
    const verdict = judgeClaim(state, claim, cluster.successionKey);
    if (verdict === 'unproven') cluster.unproven(claim.epoch);
    if (verdict !== 'proven') {
      this.#end({ why: 'closed' });
      return;
    }
    cluster.superseded(claim.epoch).then(
      () => this.#end({ why: 'superseded' }),
      (error: unknown) => this.#end({ why: 'failed', error }),
    );
  }

  #act(action: FollowerAction): void {
    if (action.kind === 'propose') {
      const { step } = action;
      this.#parts.cluster.propose(step).then(
        (result) => this.#settled(step, result),
        (error: unknown) => this.#end({ why: 'failed', error }),
      );
    } else if (action.kind === 'reconnect') this.#end({ why: 'reconnect', reason: action.why });
    else if (action.kind === 'stop') this.#end({ why: 'stop', reason: action.why });
  }

  #settled(step: (FollowerAction & { kind: 'propose' })['step'], result: Proposed): void {
    if (this.#hasEnded) return;
    const state = this.#parts.cluster.state();
    if (state === undefined || state.role !== 'secondary') {
      this.#end({ why: 'not_active' });
      return;
    }
    if (result === 'committed') {
      const at = cursorOf(state);
      this.#noteApplied(state);
      if (step.kind === 'stage') this.#send({ kind: 'staged', attempt: step.attempt, chunk: step.chunk });
      else this.#send({ kind: 'ack', at, echoMs: undefined });
    }
    this.#act(this.#follower.settled(result));
  }

  /** From now on the primary waits for this cluster, which may lack what was used before that, however far it has caught up. */
  #awaited(): void {
    this.#isAwaited = true;
    this.#firstHeard = undefined;
    this.#hasCaughtUp = false;
  }

  #noteApplied(state: ReplicationState): void {
    const [own, first] = [cursorOf(state), this.#firstHeard];
    if (own === undefined) return;
    this.#lag.applied(own.index);
    if (this.#hasCaughtUp || first === undefined || !sameEpoch(own, first) || own.index < first.index) return;
    this.#hasCaughtUp = true;
    if (this.#isAwaited) this.#parts.cluster.counted();
  }

  #send(frame: Frame): void {
    if (!this.#hasEnded) this.#parts.wire.send(encodeFrame(frame));
  }

  #end(end: SessionEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#parts.wire.end();
    this.#parts.onEnd(end);
  }
}
