import type { ProposalOutcome } from '@transitd/raft-core';
import { expect } from 'chai';
import { type HistoryResult, SimClock, SimNode, type SimNodeOptions, SimRandom, type SimRun } from '../../src/index.ts';
import { bytes, text } from './observed.ts';

type Outcome = ProposalOutcome<HistoryResult>;

/**
 * A client, a disk and a node that is crashed, broken and stopped at random, and the rules that hold nevertheless. Answered writes stay,
 * and refused writes never appear. One index always holds the same entry. A read misses no write that was answered before it.
 */
class Schedule {
  readonly #random: SimRandom;
  readonly #clock = new SimClock();
  readonly #node = new SimNode(this.#clock);
  readonly #outcomes = new Map<string, Outcome | 'cut off'>();
  /** The entry seen at each index, in any incarnation. */
  readonly #committed: string[] = [];
  readonly #transcript: string[] = [];
  #run: SimRun;
  #proposed = 0;
  #highestAnswered = 0;
  #durableTerm = 0;

  constructor(seed: number) {
    this.#random = new SimRandom(seed);
    this.#run = this.#start();
  }

  play(operations: number): string {
    for (let i = 0; i < operations; i++) {
      this.#operate();
      this.#check();
    }
    this.#crash();
    this.#clock.runUntil(() => this.#run.driver.status().ready);
    this.#check();
    this.#checkOutcomes();
    return JSON.stringify([this.#transcript, this.#node.disk.entries, this.#node.disk.hardState]);
  }

  #operate(): void {
    const choice = this.#random.below(40);
    if (choice < 18) this.#propose();
    else if (choice < 22) this.#read();
    else if (choice < 36) for (let steps = this.#random.below(30); steps > 0; steps--) this.#clock.step();
    else if (choice < 37) this.#run.log.failNext('write', new Error('write'), { landed: this.#random.below(4) });
    else if (choice < 38) this.#run.stateMachine.failNextFlush(new Error('flush'));
    else if (choice < 39) this.#run.driver.stop(() => this.#transcript.push('stopped'));
    else this.#crash();
  }

  #propose(): void {
    const name = `p${this.#proposed++}`;
    const data = bytes(name.padEnd(this.#random.below(60), '.'));
    this.#outcomes.set(name, 'cut off');
    this.#run.driver.propose(data, (outcome) => {
      expect(this.#outcomes.get(name), 'one answer each').to.equal('cut off');
      this.#outcomes.set(name, outcome);
      if (outcome.kind === 'applied') this.#highestAnswered = Math.max(this.#highestAnswered, outcome.index);
      this.#transcript.push(`${name} ${JSON.stringify(outcome)}`);
    });
  }

  #read(): void {
    const answeredBefore = this.#highestAnswered;
    const { driver, stateMachine } = this.#run;
    driver.readIndex((outcome) => {
      this.#transcript.push(`read ${JSON.stringify(outcome)}`);
      if (outcome.kind !== 'readable') return;
      expect(outcome.index).to.be.at.least(answeredBefore);
      expect(stateMachine.history.length).to.be.at.least(outcome.index);
    });
  }

  #start(): SimRun {
    const delayMs = (): number => this.#random.below(4);
    const limits = { compactAfterEntries: 12, keepTrailingEntries: 4, inFlightMax: 20, uncommittedBytesMax: 400 };
    const replay = { unflushedBytesMax: 2_000, logReadBytesMax: 100, committedBytesMax: 100 };
    const options: SimNodeOptions = { driver: { limits: { ...limits, ...replay } }, log: { delayMs }, stateMachine: { delayMs } };
    return this.#node.start(options);
  }

  #crash(): void {
    this.#node.crash(this.#run, { landed: this.#random.below(6), flushLands: this.#random.below(2) === 0 });
    this.#run = this.#start();
  }

  #check(): void {
    for (const error of this.#run.fatal) expect(error.message).to.be.oneOf(['write', 'flush']);
    const { term, vote } = this.#node.disk.hardState;
    expect(term, 'the durable term never falls').to.be.at.least(this.#durableTerm);
    expect(vote, 'a raised term is voted for').to.equal(term === 0 ? 0 : 1);
    this.#durableTerm = term;
    for (const { index, term: entryTerm, data } of this.#run.stateMachine.history.slice(-40)) {
      const entry = `${entryTerm} ${text(data)}`;
      this.#committed[index] ??= entry;
      expect(this.#committed[index], `entry ${index}`).to.equal(entry);
    }
  }

  #checkOutcomes(): void {
    const history = this.#run.stateMachine.history;
    const places = new Map(history.map(({ index, data }) => [text(data).replace(/\.+$/, ''), index]));
    const writes = history.filter(({ type }) => type === 'normal');
    expect(new Set(writes.map(({ data }) => text(data))).size, 'nothing is applied twice').to.equal(writes.length);
    for (const [name, outcome] of this.#outcomes) {
      if (outcome === 'cut off') continue;
      if (outcome.kind === 'applied') expect(places.get(name), name).to.equal(outcome.index);
      if (outcome.kind === 'refused') expect(places.has(name), name).to.equal(false);
      if (outcome.kind === 'unknown') expect(places.get(name) ?? outcome.index, name).to.equal(outcome.index);
    }
  }
}

describe('a node under random schedules', () => {
  for (let seed = 1; seed <= 80; seed++) {
    it(`keeps its promises under crashes, failing disks and stops, and repeats itself (seed ${seed})`, () => {
      expect(new Schedule(seed).play(250)).to.equal(new Schedule(seed).play(250));
    });
  }
});
