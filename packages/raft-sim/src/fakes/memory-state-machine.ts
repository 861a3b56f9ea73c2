import { type Entry, invariant, type LogIndex, type StateMachine } from '@transitd/raft-core';
import type { Scheduler } from './sim-clock.ts';

/** Returns a digest over all entries up to and including `index`, in order: equal digests mean equal histories. */
export interface HistoryResult {
  readonly index: LogIndex;
  readonly digest: number;
}

/** The part of a simulated node's state that survives a crash: every entry it applied durably, in order. */
export class MemoryState {
  flushed: Entry[] = [];
}

export interface MemoryStateMachineOptions {
  /** Returns how long the next flush takes. */
  delayMs(): number;
  /** Called within each apply, for tests in which it takes time or fails. */
  onApply?(entry: Entry): void;
}

/** A state machine whose state is the history itself, so that a lost, duplicated or reordered entry shows at once. */
export class MemoryStateMachine implements StateMachine<HistoryResult> {
  readonly flushedAtOpen: LogIndex;
  /** Everything applied, flushed or not. */
  readonly history: Entry[];
  /** The newest applied index at each call of `publish`. */
  readonly published: LogIndex[] = [];
  readonly #state: MemoryState;
  readonly #scheduler: Scheduler;
  readonly #options: MemoryStateMachineOptions;
  #digest = 0;
  #flushing: readonly Entry[] | undefined;
  #flushFault: Error | undefined;

  constructor(state: MemoryState, scheduler: Scheduler, { delayMs = () => 1, ...rest }: Partial<MemoryStateMachineOptions> = {}) {
    this.#state = state;
    this.#scheduler = scheduler;
    this.#options = { delayMs, ...rest };
    this.history = [...state.flushed];
    this.flushedAtOpen = this.history.length;
    for (const entry of this.history) this.#digest = digestOf(this.#digest, entry);
  }

  apply(entry: Entry): HistoryResult {
    invariant(entry.index === this.history.length + 1, 'entries are applied in order, each once', { index: entry.index });
    this.#options.onApply?.(entry);
    this.history.push(entry);
    this.#digest = digestOf(this.#digest, entry);
    return { index: entry.index, digest: this.#digest };
  }

  publish(): void {
    this.published.push(this.history.length);
  }

  flush(done: (error: Error | undefined, flushed: LogIndex) => void): void {
    invariant(this.#flushing === undefined, 'one flush is in flight', { applied: this.history.length });
    const flushing = [...this.history];
    this.#flushing = flushing;
    this.#scheduler.after(this.#options.delayMs(), () => {
      this.#flushing = undefined;
      const error = this.#flushFault;
      if (error === undefined) this.#state.flushed = flushing;
      this.#scheduler.after(0, () => done(error, this.#state.flushed.length));
    });
  }

  failNextFlush(error: Error): void {
    this.#flushFault = error;
  }

  /** Ends the process; a flush under way is stored as a whole or not at all. */
  crash({ flushLands }: { readonly flushLands: boolean }): void {
    if (flushLands && this.#flushing !== undefined) this.#state.flushed = [...this.#flushing];
  }
}

/** FNV-1a over the entry's type, term and bytes, continued from the digest before it. */
function digestOf(before: number, { type, term, data }: Entry): number {
  let digest = before ^ 0x811c9dc5;
  for (const byte of [type.charCodeAt(0), term, ...data]) digest = Math.imul(digest ^ byte, 0x01000193);
  return digest >>> 0;
}
