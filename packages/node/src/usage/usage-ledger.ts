import { randomUUID } from 'node:crypto';
import type { RecordClock } from '@transitd/process';
import type { UseTally } from '@transitd/transit-engine';
import { CountedUses, type UseCounter } from './counted-uses.ts';
import { type KeyVersionUse, type UsageQuestion, type UsageReport, unknownProcess, usageQuestion } from './usage-wire.ts';

/** Most key versions in one batch. A transaction holds the batches of all nodes. */
export const batchVersionsMax = 2000;

/**
 * The uses of keys on this node, of all its threads, until the active node has recorded them. It outlives seals: it holds names and
 * numbers, no keys. What the active node has not fetched ends with the process.
 */
export class UsageLedger implements UseCounter {
  readonly #process = randomUUID();
  readonly #follows: string;
  readonly #uses = new CountedUses();
  readonly #clock: Pick<RecordClock, 'utcMs'>;
  #batch: UsageReport['batch'];
  #newest = 0;
  #merged = 0;
  /** The process of this node that the records name; unknown while the first report of this one may be recorded or not. */
  #named: string;
  #isEnding = false;
  #askThreads: () => Promise<boolean> = () => Promise.resolve(true);

  /** @param follows - {@link endsAs} of the last process on the same data directory; empty if there was none */
  constructor(clock: Pick<RecordClock, 'utcMs'>, follows = '') {
    this.#clock = clock;
    this.#follows = follows;
    this.#named = follows;
  }

  /** The process that the next one on this data directory follows, if this one ends now. */
  get endsAs(): string {
    return this.#batch !== undefined || this.#uses.size > 0 || this.#uses.hasLost ? unknownProcess : this.#named;
  }

  /** Whether the active node has recorded that this process counts. */
  get isKnown(): boolean {
    return this.#named === this.#process;
  }

  /** Notes that no further requests will use keys. */
  end(): void {
    this.#isEnding = true;
  }

  count(mount: string, name: string, tally: UseTally): void {
    this.#uses.add(mount, name, tally, this.#clock.utcMs());
  }

  /** Adds the uses that a gateway thread has counted. */
  addFromThread(uses: readonly KeyVersionUse[], { hasLost }: { readonly hasLost: boolean }): void {
    this.#uses.merge(uses, { hasLost });
  }

  /** Sets the function that makes the gateway threads hand over their uses, and returns whether all have. */
  followThreads(ask: () => Promise<boolean>): void {
    this.#askThreads = ask;
  }

  /** Answers a question of the active node. @throws ZodError for a question unknown to this release */
  async report(question: unknown): Promise<UsageReport> {
    const asked = usageQuestion.parse(question);
    const haveReported = await this.#askThreads();
    const answer = this.#answer(asked);
    const isComplete = haveReported && !this.#uses.hasLost; // unless this answer says what is lost
    const isLast = this.#isEnding && !answer.hasMore;
    return { ...answer, process: this.#process, follows: this.#follows, isLast, merged: this.#merged, isComplete };
  }

  #answer(asked: UsageQuestion): Pick<UsageReport, 'batch' | 'rest' | 'hasMore'> {
    if (asked.kind === 'key') {
      const batch = this.#batch && { ...this.#batch, uses: this.#batch.uses.filter(({ id }) => id === asked.id) };
      return { ...(batch && { batch }), rest: [...this.#uses.of(asked.id)], hasMore: false };
    }
    this.#recorded(asked);
    if (this.#batch === undefined && (this.#uses.size > 0 || this.#uses.hasLost)) {
      this.#newest += 1;
      this.#batch = { number: this.#newest, uses: [...this.#uses.take(batchVersionsMax)], hasLost: this.#uses.takeLost() };
    }
    return { ...(this.#batch && { batch: this.#batch }), rest: [], hasMore: this.#uses.size > 0 };
  }

  /** Learns what is recorded: forgets the batch if it is. An earlier process says nothing about the batches of this one. */
  #recorded({ process, merged }: { readonly process: string; readonly merged: number }): void {
    if (process !== this.#process) {
      if (!this.isKnown) this.#named = unknownProcess;
      return;
    }
    this.#named = process;
    if (this.#batch === undefined || merged < this.#batch.number) return;
    this.#merged = this.#batch.number;
    this.#batch = undefined;
  }
}
