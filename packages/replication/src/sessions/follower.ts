import { type Cursor, cursorOf, type ReplicationState, type ReplicationStep, sameEpoch } from '@transitd/storage-fsm';
import { proofOf } from '../roles/meeting.ts';
import type { Frame } from '../stream/frame.ts';
import { joinOutcomes } from '../stream/join-outcomes.ts';
import type { Outcome } from '../stream/outcome.ts';
import type { Proposed, SecondaryCluster, StopReason } from './session-ports.ts';

/**
 * `propose`: commit the step, then call `settled`. To a `swap` the caller adds the local records, because encrypting them needs keys.
 * `reconnect`: close the connection and send a new hello. `stop`: do not follow this primary until an operator has decided; nothing was
 * changed.
 */
export type FollowerAction =
  | { readonly kind: 'propose'; readonly step: ReplicationStep }
  | { readonly kind: 'reconnect'; readonly why: 'gap' | 'other_epoch' | 'conflict' | 'overflow' | 'refused' }
  | { readonly kind: 'stop'; readonly why: StopReason }
  | { readonly kind: 'wait' };

/** The part of a {@link SecondaryCluster} that decides about frames. */
type FollowingCluster = Pick<SecondaryCluster, 'state' | 'level' | 'wantsWholeState' | 'digest' | 'successionKey'>;

const wait: FollowerAction = { kind: 'wait' };

/** A step of several outcome frames has about this many bytes at most. Larger frames would gain nothing by sharing the sync of an entry. */
const stepBytesMax = 2 ** 20;

/**
 * The active node of a secondary, on one connection to its primary: turns frames into steps, one after another. Outcomes that arrive while
 * a step is being committed become one step: with a step for each, the last one would wait for the sync of every entry before it. A frame
 * must continue exactly at the present position. An older frame is ignored; any other frame ends the connection, and the next hello names
 * the position.
 */
export class Follower {
  readonly #cluster: FollowingCluster;
  readonly #queueMax: number;
  readonly #queue: Frame[] = [];
  #committing = false;
  #state: (Frame & { kind: 'state' }) | undefined;
  /** The position of this cluster at the hello. A step of an earlier connection may commit after it. */
  #greetedAt: Cursor | undefined;

  /** @param queueMax - frames that may wait while a step is being committed; a primary that sends more does not respect the window */
  constructor(cluster: FollowingCluster, queueMax: number) {
    this.#cluster = cluster;
    this.#queueMax = queueMax;
  }

  hello(): Frame {
    const { successionKey: key, wantsWholeState } = this.#cluster;
    const state = this.#present();
    const cursor = cursorOf(state);
    this.#greetedAt = cursor;
    return {
      kind: 'hello',
      set: state.set,
      cursor,
      ...(cursor !== undefined && key !== undefined && { proof: proofOf(key, state.set, cursor) }),
      wantsWholeState,
      level: this.#cluster.level(),
    };
  }

  received(frame: Frame): FollowerAction {
    if (this.#queue.length >= this.#queueMax) return { kind: 'reconnect', why: 'overflow' };
    this.#queue.push(frame);
    return this.#committing ? wait : this.#next();
  }

  /** Records the result of the last step; `unknown` if the step may still be committed. */
  settled(result: Proposed): FollowerAction {
    this.#committing = false;
    if (result === 'unusable') return { kind: 'stop', why: 'state_unusable' };
    return result === 'committed' ? this.#next() : { kind: 'reconnect', why: 'conflict' };
  }

  #next(): FollowerAction {
    for (let frame = this.#queue.shift(); frame !== undefined; frame = this.#queue.shift()) {
      const action = this.#take(frame);
      if (action.kind === 'wait') continue;
      this.#committing = action.kind === 'propose';
      return action;
    }
    return wait;
  }

  #take(frame: Frame): FollowerAction {
    switch (frame.kind) {
      case 'welcome':
        return this.#welcomed(frame);
      case 'state':
        return this.#offered(frame);
      case 'records':
        if (this.#state?.attempt !== frame.attempt) return { kind: 'reconnect', why: 'gap' };
        return propose({ ...frame, kind: 'stage' });
      case 'end':
        return this.#ended(frame);
      case 'outcome':
        return this.#follow(frame);
      case 'checkpoint':
        return this.#compare(frame);
      case 'refusal':
        return { kind: 'reconnect', why: 'refused' };
      default:
        return wait;
    }
  }

  #welcomed({ epochs }: Frame & { kind: 'welcome' }): FollowerAction {
    const from = cursorOf(this.#present());
    const newest = epochs.at(-1);
    if (from === undefined || newest === undefined) return { kind: 'reconnect', why: 'gap' };
    if (sameEpoch(from, newest)) return wait;
    return newest.number > from.number ? propose({ kind: 'adopt', from, epochs }) : this.#older(from);
  }

  /** Receives a whole state only of a primary in this cluster's epoch or a later one: the swap to any other one would have no effect. */
  #offered(frame: Frame & { kind: 'state' }): FollowerAction {
    const [own, newest] = [cursorOf(this.#present()), frame.epochs.at(-1)];
    const isOlder = own !== undefined && newest !== undefined && newest.number <= own.number && !sameEpoch(own, newest);
    if (isOlder) return this.#older(own);
    this.#state = frame;
    return wait;
  }

  /** The primary is in an older epoch, or in another one of the same number. If it may only not know of ours yet, tell it first. */
  #older(own: Cursor): FollowerAction {
    const isKnown = this.#greetedAt !== undefined && sameEpoch(this.#greetedAt, own);
    return isKnown ? { kind: 'stop', why: 'primary_is_older' } : { kind: 'reconnect', why: 'other_epoch' };
  }

  #ended({ attempt, records, digest }: Frame & { kind: 'end' }): FollowerAction {
    const state = this.#state;
    this.#state = undefined;
    if (state?.attempt !== attempt) return { kind: 'reconnect', why: 'gap' };
    const { epochs, index, valuesWritten, restoredAt } = state;
    return propose({
      ...{ kind: 'swap', attempt, records, digest, valuesWritten, epochs, index },
      ...(restoredAt !== undefined && { restoredAt }),
      ...{ local: [], localReadAt: 0 },
    });
  }

  #follow(frame: Frame & { kind: 'outcome' }): FollowerAction {
    const at = cursorOf(this.#present());
    if (at === undefined || !sameEpoch(at, frame.epoch)) return { kind: 'reconnect', why: 'other_epoch' };
    if (frame.to <= at.index) return wait;
    if (frame.from !== at.index) return { kind: 'reconnect', why: 'gap' };
    const { to, writes, valuesWritten } = joinOutcomes(this.#continuing(frame), stepBytesMax) ?? frame;
    // Those that are part of the step.
    while (this.#queue[0]?.kind === 'outcome' && this.#queue[0].to <= to) this.#queue.shift();
    return propose({ kind: 'follow', from: at, to, writes, valuesWritten, local: [] });
  }

  /** Yields the outcome of a frame, and those of the waiting frames that continue it. */
  *#continuing(frame: Frame & { kind: 'outcome' }): Generator<Outcome> {
    yield frame;
    let { to } = frame;
    for (const next of this.#queue) {
      if (next.kind !== 'outcome' || next.from !== to || !sameEpoch(next.epoch, frame.epoch)) return;
      yield next;
      to = next.to;
    }
  }

  #compare({ at, digest }: Frame & { kind: 'checkpoint' }): FollowerAction {
    const own = cursorOf(this.#present());
    if (own === undefined || !sameEpoch(own, at) || own.index !== at.index) return wait;
    const ownDigest = this.#cluster.digest(own);
    return ownDigest === undefined || ownDigest === digest ? wait : { kind: 'stop', why: 'digest_differs' };
  }

  #present(): ReplicationState {
    const state = this.#cluster.state();
    if (state === undefined) throw new TypeError('this node is not the active one');
    return state;
  }
}

const propose = (step: ReplicationStep): FollowerAction => ({ kind: 'propose', step });
