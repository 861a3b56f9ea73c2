import type { LogIndex } from '@transitd/raft-core';
import { type EpochName, type ReplicationState, sameEpoch } from '@transitd/storage-fsm';
import type { Frame } from '../stream/frame.ts';
import type { OutcomeHold, OutcomeLog } from '../stream/outcome-log.ts';

/** Limits of one connection. A frame with several entries has about `frameBytes` at most. */
interface SenderLimits {
  readonly frameBytes: number;
  /** Outcome frames that were sent and not acknowledged. */
  readonly framesMax: number;
}

/** The start of a stream. */
interface SenderStart {
  /** The position of the secondary, now or after it has received the whole state. */
  readonly from: LogIndex;
  readonly epoch: EpochName;
  readonly limits: SenderLimits;
  /** The outcomes after `from`, held since the state was read. They are released once all of them are sent. */
  readonly hold?: OutcomeHold;
}

/**
 * Produces the frames for one secondary after its hello was answered; the transport sends them in order. The primary's own writes never
 * wait for them. It sends within one epoch only: after a change of the epoch, the secondary must send a new hello.
 */
export class Sender {
  readonly #outcomes: OutcomeLog;
  readonly #limits: SenderLimits;
  readonly #epoch: EpochName;
  #sent: LogIndex;
  /** Ends of the outcome frames that are not yet acknowledged. */
  readonly #open: LogIndex[] = [];

  #hold: OutcomeHold | undefined;

  constructor(outcomes: OutcomeLog, { from, epoch, limits, hold }: SenderStart) {
    this.#outcomes = outcomes;
    this.#limits = limits;
    this.#epoch = { number: epoch.number, id: epoch.id };
    this.#sent = from;
    this.#hold = hold;
  }

  /** The position after the newest frame that was sent. */
  get sent(): LogIndex {
    return this.#sent;
  }

  /**
   * Returns the frames that may be sent now. `behind`: the outcomes after the last sent one are no longer kept. `ended`: this cluster no
   * longer sends in the epoch of the hello.
   */
  frames({ role, epochs }: Pick<ReplicationState, 'role' | 'epochs'>): Frame[] | 'behind' | 'ended' {
    const current = epochs.at(-1);
    const isSending = role === 'primary' || role === 'demoted';
    if (!isSending || current === undefined || !sameEpoch(current, this.#epoch)) return 'ended';
    const frames: Frame[] = [];
    while (this.#open.length < this.#limits.framesMax) {
      if (!this.#outcomes.continuesFrom(this.#sent)) return 'behind';
      const outcome = this.#outcomes.after(this.#sent, this.#limits.frameBytes);
      if (outcome === undefined) {
        this.close();
        break;
      }
      frames.push({ kind: 'outcome', epoch: this.#epoch, ...outcome });
      this.#sent = outcome.to;
      this.#hold?.advance(outcome.to);
      this.#open.push(outcome.to);
    }
    return frames;
  }

  acknowledged(index: LogIndex): void {
    while ((this.#open[0] ?? Number.POSITIVE_INFINITY) <= index) this.#open.shift();
  }

  /** Releases the held outcomes. The caller calls this when the connection ends. */
  close(): void {
    this.#hold?.release();
    this.#hold = undefined;
  }
}
