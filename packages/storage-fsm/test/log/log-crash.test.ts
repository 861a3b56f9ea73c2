import type { Entry, LogIndex, SnapshotMeta } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import { createNode, hasNode } from '../../src/directory/node-directory.ts';
import { StorageFailed } from '../../src/errors.ts';
import { SegmentLog } from '../../src/log/segment-log.ts';
import { MemoryDisk } from '../directory/memory-disk.ts';
import { base, close, compact, contents, entry, genesis, shown, write } from './log-calls.ts';

/** A random call on the log. Its numbers are choices, adapted to the log's state when the call is made. */
type Step =
  | { readonly kind: 'append'; readonly count: number; readonly bytes: number; readonly wait: boolean }
  | { readonly kind: 'supersede'; readonly back: number; readonly count: number; readonly wait: boolean }
  | { readonly kind: 'vote'; readonly wait: boolean }
  | { readonly kind: 'commit' | 'compact'; readonly back: number }
  | { readonly kind: 'tick' | 'reopen' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      count: fc.integer({ min: 1, max: 4 }),
      bytes: fc.nat(300),
      wait: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('supersede' as const),
      back: fc.nat(6),
      count: fc.integer({ min: 1, max: 3 }),
      wait: fc.boolean(),
    }),
  },
  fc.record({ kind: fc.constant('vote' as const), wait: fc.boolean() }),
  fc.record({ kind: fc.constantFrom('commit' as const, 'compact' as const), back: fc.nat(4) }),
  fc.record({ kind: fc.constantFrom('tick' as const, 'reopen' as const) }),
);

interface Vote {
  readonly term: number;
  readonly vote: number;
}

/** The requested writes and how many of them were acknowledged. */
class Asked {
  /** Entries in the order of writing; the first `acknowledged` of them must survive. */
  records: Entry[] = [];
  acknowledged = 0;
  votes: Vote[] = [{ term: 0, vote: 0 }];
  votesAcknowledged = 1;
  bases: SnapshotMeta[] = [genesis];
  basesAcknowledged = 1;
  commit: LogIndex = 0;

  get vote(): Vote {
    return this.votes.at(-1) ?? { term: 0, vote: 0 };
  }
  /** Returns the log after the first `count` records. */
  log(count = this.records.length): Entry[] {
    const log: Entry[] = [];
    for (const record of this.records.slice(0, count)) log.splice(record.index - 1, Number.POSITIVE_INFINITY, record);
    return log;
  }
  /** Returns every log that a crash may leave for a given base, as text. */
  legalLogs(after: LogIndex): string[] {
    const counts = Array.from({ length: this.records.length - this.acknowledged + 1 }, (_, i) => this.acknowledged + i);
    return counts.map((count) => shown(this.log(count).slice(after)).join());
  }
  /** Continues from the log that the next start found. */
  found({ start }: SegmentLog, found: number): void {
    this.records = this.log(found);
    this.acknowledged = this.records.length;
    this.commit = Math.min(this.commit, this.records.length);
    this.votes = [start.hardState];
    this.votesAcknowledged = 1;
    this.bases = [start.base];
    this.basesAcknowledged = 1;
  }
}

/** Runs the node once, until its disk fails or the steps end. */
class Life {
  readonly #log: SegmentLog;
  readonly #asked: Asked;
  readonly #tick: () => void;
  readonly #open: Promise<unknown>[] = [];

  constructor(log: SegmentLog, asked: Asked, tick: () => void) {
    this.#log = log;
    this.#asked = asked;
    this.#tick = tick;
  }

  async take(step: Step): Promise<void> {
    const asked = this.#asked;
    const log = asked.log();
    switch (step.kind) {
      case 'append':
        return this.#write(log.length + 1, step.count, step.bytes, step.wait);
      case 'supersede':
        // A term that was used only for votes needs no second change of the hard state.
        if ((log.at(-1)?.term ?? 0) === asked.vote.term) asked.votes.push({ term: asked.vote.term + 1, vote: 0 });
        return this.#write(Math.max(asked.commit, log.length - step.back) + 1, step.count, 20, step.wait);
      case 'vote':
        asked.votes.push({ term: asked.vote.term + 1, vote: asked.votes.length });
        return this.#write(log.length + 1, 0, 0, step.wait);
      case 'commit':
        asked.commit = Math.max(asked.commit, log.length - step.back);
        return this.#log.noteCommit(asked.commit);
      case 'compact':
        return this.#compact(Math.min(asked.commit, asked.log(asked.acknowledged).length) - step.back);
      case 'tick':
        return this.#tick();
      case 'reopen':
        return this.end();
    }
  }

  async end(): Promise<void> {
    await Promise.all(this.#open);
    await close(this.#log);
  }

  async #write(first: LogIndex, count: number, bytes: number, wait: boolean): Promise<void> {
    const asked = this.#asked;
    const { term, vote } = asked.vote;
    const batch = Array.from({ length: count }, (_, i) =>
      entry(first + i, term, `${asked.records.length + i}`.padEnd(bytes, '.')),
    );
    asked.records.push(...batch);
    const [records, votes] = [asked.records.length, asked.votes.length];
    const writing = write(this.#log, { hardState: { term, vote, commit: 0 }, entries: batch }).then(() => {
      asked.acknowledged = Math.max(asked.acknowledged, records);
      asked.votesAcknowledged = Math.max(asked.votesAcknowledged, votes);
    });
    writing.catch(() => undefined);
    this.#open.push(writing);
    if (wait) await writing;
  }

  async #compact(index: LogIndex): Promise<void> {
    const asked = this.#asked;
    await Promise.all(this.#open);
    const at = asked.log()[index - 1];
    if (at === undefined || index <= (asked.bases.at(-1)?.index ?? 0)) return;
    asked.bases.push(base(index, at.term));
    await compact(this.#log, base(index, at.term));
    asked.basesAcknowledged = asked.bases.length;
  }
}

async function expectNothingLost(log: SegmentLog, asked: Asked): Promise<void> {
  const { start } = log;
  const legalVotes = asked.votes.slice(asked.votesAcknowledged - 1).map(({ term, vote }) => `${term}:${vote}`);
  expect(legalVotes).to.include(`${start.hardState.term}:${start.hardState.vote}`);
  expect(asked.bases.slice(asked.basesAcknowledged - 1)).to.deep.include(start.base);
  const legal = asked.legalLogs(start.base.index);
  const found = legal.indexOf((await contents(log)).join());
  expect(found, `${await contents(log)} in ${legal.join(' | ')}`).to.be.at.least(0);
  const logFound = asked.log(asked.acknowledged + found);
  expect(start.hardState.commit).to.be.at.most(Math.max(asked.commit, start.base.index));
  expect(shown(logFound.slice(0, start.hardState.commit))).to.deep.equal(shown(asked.log().slice(0, start.hardState.commit)));
  expect(logFound.at(-1)?.term ?? 0).to.be.at.most(start.hardState.term);
  asked.found(log, asked.acknowledged + found);
}

describe('a node after a power failure', () => {
  it('opens with every acknowledged entry, vote and base, whichever unsynced pages survived', async () => {
    let crashes = 0;
    const property = fc.asyncProperty(
      fc.array(step, { minLength: 3, maxLength: 30 }),
      fc.array(fc.nat(60), { maxLength: 5 }),
      fc.integer(),
      async (steps, crashPoints, seed) => {
        const coin = coins(seed);
        const asked = new Asked();
        const remaining = [...steps];
        let disk = new MemoryDisk();
        for (const crashPoint of [...crashPoints, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]) {
          let operations = 0;
          const here = disk;
          let left: MemoryDisk | undefined;
          here.before = () => {
            if (operations++ < crashPoint) return;
            left ??= here.crash(coin);
            throw new Error('the power is off');
          };
          try {
            if (!(await hasNode('/node', here))) await createNode('/node', { clusterId: 'c', nodeId: 7, base: genesis }, here);
            let tick: () => void = () => undefined;
            const every = (_: number, task: () => void) => {
              tick = task;
              return () => undefined;
            };
            for (;;) {
              const log = await SegmentLog.open('/node', {
                segmentBytes: 500,
                growBytes: 192,
                cacheBytes: 100,
                disk: here,
                every,
              });
              await expectNothingLost(log, asked);
              const life = new Life(log, asked, tick);
              let next = remaining.shift();
              for (; next !== undefined && next.kind !== 'reopen'; next = remaining.shift()) await life.take(next);
              await life.end();
              if (next === undefined) break;
            }
          } catch (error) {
            if (left === undefined || !(error instanceof StorageFailed || (error as Error).message === 'the power is off'))
              throw error;
          }
          crashes += left === undefined ? 0 : 1;
          disk = left ?? here;
        }
      },
    );
    await fc.assert(property, { numRuns: 400 });
    expect(crashes).to.be.above(200);
  });
});

/** A small random generator, so that a seed reproduces a failing case. */
function coins(seed: number): () => boolean {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 31 === 1;
  };
}
