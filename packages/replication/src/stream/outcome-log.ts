import type { LogIndex } from '@transitd/raft-core';
import type { AppliedObserver, ReplicatedWrite } from '@transitd/storage-fsm';
import { type Consequence, consequenceOf, type Outcome } from './outcome.ts';

/** Estimated memory of an outcome and of one of its writes, without their bytes. */
const outcomeBytes = 120;
const writeBytes = 200;

/** Maximum number of outcomes in one, so that making it takes little time. */
const entriesMax = 4096;

export interface OutcomeLogLimits {
  /** Approximate limit of the memory; the oldest outcomes are dropped above it. */
  readonly bytesMax: number;
  /** The limit while outcomes are held for a secondary that receives the whole state; above it, held ones are dropped too. */
  readonly heldBytesMax: number;
}

/** Keeps outcomes after a position until it is released. */
export interface OutcomeHold {
  /** From now on, only the outcomes after this position are kept. */
  advance(index: LogIndex): void;
  release(): void;
}

/**
 * The newest outcomes of this cluster, in memory, for the secondaries that follow. The log alone cannot replace them: whether an old entry
 * conflicted is not in it.
 */
export class OutcomeLog implements AppliedObserver {
  readonly #limits: OutcomeLogLimits;
  /** The outcomes from `#start` on; those before it were dropped. */
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

  /** Notes an entry that was applied. */
  entry(applied: Parameters<AppliedObserver['entry']>[0]): void {
    this.note(consequenceOf(applied));
  }

  /** Forgets all outcomes: the state at this position does not result from them. */
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

  /** Keeps the outcomes after a position longer, for a secondary that receives the whole state at this position. */
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
   * Returns the outcomes after a position as one: several entries, each path once, of about `bytesMax` at most (one entry may be larger).
   * Only the last write of each path counts: so a secondary on a slow link gets fewer writes than were made, if they concern few paths.
   * Undefined if there are none, or if the position is not kept.
   */
  after(index: LogIndex, bytesMax: number): Outcome | undefined {
    const start = this.#at(index);
    if (start === undefined) return undefined;
    const writes = new Map<string, ReplicatedWrite>();
    let [to, valuesWritten, bytes] = [index, 0, 0];
    for (const outcome of this.#outcomes.slice(start, start + entriesMax)) {
      if (outcome === undefined) break;
      const grown = outcome.writes.reduce((sum, write) => sum + sizeOfWrite(write) - sizeOfWrite(writes.get(write.path)), bytes);
      if (to > index && grown > bytesMax) break;
      for (const write of outcome.writes) writes.set(write.path, write);
      to = outcome.to;
      valuesWritten += outcome.valuesWritten;
      bytes = grown;
    }
    return { from: index, to, writes: [...writes.values()], valuesWritten };
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
    // Now and then, so that dropping an outcome does not move all others.
    if (this.#start > 1024 && this.#start > this.#outcomes.length / 2) {
      this.#outcomes = this.#outcomes.slice(this.#start);
      this.#start = 0;
    }
  }
}

/** Copies the values: they are views of log entries, which would stay in memory with them. */
const copied = (outcome: Outcome): Outcome => ({
  ...outcome,
  writes: outcome.writes.map(({ path, value, revision }) => ({ path, value: value && Buffer.from(value), revision })),
});

const sizeOf = ({ writes }: Outcome): number => writes.reduce((sum, write) => sum + sizeOfWrite(write), outcomeBytes);

const sizeOfWrite = (write: ReplicatedWrite | undefined): number =>
  write === undefined ? 0 : writeBytes + write.path.length + (write.value?.length ?? 0);
