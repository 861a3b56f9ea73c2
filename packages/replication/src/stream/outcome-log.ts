import type { LogIndex } from '@transitd/raft-core';
import type { AppliedObserver } from '@transitd/storage-fsm';
import { joinOutcomes, sizeOfWrite } from './join-outcomes.ts';
import { type Consequence, consequenceOf, type Outcome } from './outcome.ts';

/** Estimated memory of an outcome, in addition to that of its writes. */
const outcomeBytes = 120;

/** Maximum number of outcomes that are joined into one, which limits the time for it. */
const entriesMax = 4096;

interface OutcomeLogLimits {
  /** Approximate limit of the memory; the oldest outcomes are dropped above it. */
  readonly bytesMax: number;
  /** The limit while outcomes are held for a secondary that receives the whole state. Above this limit, held outcomes are dropped too. */
  readonly heldBytesMax: number;
}

/** Keeps outcomes after a position until it is released. */
export interface OutcomeHold {
  /** From now on, only the outcomes after this position are kept. */
  advance(index: LogIndex): void;
  release(): void;
}

/**
 * The newest outcomes of this cluster, in memory, for its secondaries. They cannot be read from the log later, because the log does not say
 * whether an entry conflicted.
 */
export class OutcomeLog implements AppliedObserver {
  readonly #limits: OutcomeLogLimits;
  /** The outcomes from `#start` on; earlier outcomes were dropped. */
  #outcomes: (Outcome | undefined)[] = [];
  #start = 0;
  #bytes = 0;
  /** The position of the state, and of the oldest outcome that is kept. */
  #last: LogIndex | undefined;
  #first: LogIndex | undefined;
  readonly #holds = new Set<{ index: LogIndex }>();

  constructor(limits: OutcomeLogLimits) {
    this.#limits = limits;
  }

  /** The position up to which outcomes are known; undefined before the first one. */
  get last(): LogIndex | undefined {
    return this.#last;
  }

  /** Adds the outcome of an applied entry. */
  entry(applied: Parameters<AppliedObserver['entry']>[0]): void {
    this.note(consequenceOf(applied));
  }

  /** Drops all outcomes, because the state at this position does not result from them. */
  state(position: LogIndex | undefined): void {
    this.#restart(position);
  }

  note(consequence: Consequence): void {
    if (consequence.kind === 'none') return;
    if (consequence.kind === 'restart') {
      this.#restart(consequence.at);
      return;
    }
    const outcome = copied(consequence.outcome);
    // A gap means that entries were applied before this log was kept.
    if (this.#last === undefined || outcome.from !== this.#last) this.#restart(outcome.from);
    this.#outcomes.push(outcome);
    this.#last = outcome.to;
    this.#bytes += sizeOf(outcome);
    this.#trim();
  }

  /** Returns whether a secondary at this position can follow without receiving the whole state. */
  continuesFrom(index: LogIndex): boolean {
    return index === this.#last || this.#at(index) !== undefined;
  }

  /** Holds the outcomes after a position for a secondary that receives the whole state at this position. */
  hold(index: LogIndex): OutcomeHold {
    const hold = { index };
    this.#holds.add(hold);
    return {
      advance: (to) => {
        hold.index = to;
      },
      release: () => {
        if (this.#holds.delete(hold)) this.#trim();
      },
    };
  }

  /**
   * Returns the outcomes after a position, joined into one of about `bytesMax` at most. It has only the last write of each path, so a
   * secondary on a slow link receives fewer writes if they concern few paths. Undefined if there are no outcomes after the position, or if
   * they are no longer kept.
   */
  after(index: LogIndex, bytesMax: number): Outcome | undefined {
    const start = this.#at(index);
    return start === undefined ? undefined : joinOutcomes(this.#from(start), bytesMax);
  }

  *#from(start: number): Generator<Outcome> {
    for (let at = start; at < start + entriesMax; at++) {
      const outcome = this.#outcomes[at];
      if (outcome === undefined) return;
      yield outcome;
    }
  }

  /** Returns the number of the outcome that begins at the position, by binary search. */
  #at(index: LogIndex): number | undefined {
    if (this.#first === undefined || index < this.#first) return undefined;
    let [low, high] = [this.#start, this.#outcomes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#outcomes[middle]?.from ?? 0) < index) low = middle + 1;
      else high = middle;
    }
    return this.#outcomes[low]?.from === index ? low : undefined;
  }

  #restart(at: LogIndex | undefined): void {
    this.#outcomes = [];
    this.#start = 0;
    this.#bytes = 0;
    this.#first = at;
    this.#last = at;
  }

  #trim(): void {
    const { bytesMax, heldBytesMax } = this.#limits;
    const held = Math.min(...[...this.#holds].map(({ index }) => index));
    while (this.#bytes > bytesMax) {
      const oldest = this.#outcomes[this.#start];
      if (oldest === undefined || (oldest.from >= held && this.#bytes <= heldBytesMax)) break;
      this.#outcomes[this.#start] = undefined;
      this.#start += 1;
      this.#bytes -= sizeOf(oldest);
      this.#first = oldest.to;
    }
    // Done only now and then, so that not every dropped outcome moves all later ones.
    if (this.#start > 1024 && this.#start > this.#outcomes.length / 2) {
      this.#outcomes = this.#outcomes.slice(this.#start);
      this.#start = 0;
    }
  }
}

/** Copies the values. They are views of log entries, which would otherwise stay in memory too. */
const copied = (outcome: Outcome): Outcome => ({
  ...outcome,
  writes: outcome.writes.map(({ path, value, revision }) => ({ path, value: value && Buffer.from(value), revision })),
});

const sizeOf = ({ writes }: Outcome): number => writes.reduce((sum, write) => sum + sizeOfWrite(write), outcomeBytes);
