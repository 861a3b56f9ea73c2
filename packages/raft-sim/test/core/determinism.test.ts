import type { MemberChange } from '@transitd/raft-core';
import { expect } from 'chai';
import { bytes, Cluster, confOf, text } from '../../../raft-core/test/core/cluster.ts';
import { SimRandom } from '../../src/fakes/sim-random.ts';

const parts = ['voter', 'learner', 'none'] as const satisfies MemberChange['to'][];

/**
 * Cores under a schedule drawn from a seed: messages lost, duplicated and reordered, clocks that jump, slow disks, crashes, configuration
 * changes. The simulator does this at length; this is a short version, recorded as a string.
 */
class Schedule {
  readonly #random: SimRandom;
  readonly #cluster: Cluster;
  readonly #leaders = new Map<number, number>();
  readonly #committed = new Map<number, string>();
  readonly transcript: string[] = [];
  #names = 0;

  constructor(seed: number) {
    this.#random = new SimRandom(seed);
    const limits = { inflightMessagesMax: 2, messageBytesMax: 20, inflightBytesMax: 60, committedBytesMax: 30 };
    this.#cluster = new Cluster([1, 2, 3].slice(0, 1 + this.#random.below(3)), seed % 2 === 0 ? { limits } : {});
    for (const id of [4, 5]) this.#cluster.add(id, { conf: confOf([]), ...(seed % 2 === 0 ? { limits } : {}) });
  }

  play(steps: number): void {
    for (let step = 0; step < steps; step++) {
      this.#act();
      this.#check();
    }
  }

  #act(): void {
    const cluster = this.#cluster;
    const nodes = [...cluster.nodes.values()];
    const node = nodes[this.#random.below(nodes.length)];
    if (node === undefined) return;
    const { core } = node;
    const choice = this.#random.below(100);
    if (choice < 45) this.#deliver();
    else if (choice < 57) this.#pass();
    else if (choice < 72) cluster.pump();
    else if (choice < 82) core.propose(bytes(`p${this.#names++}`));
    else if (choice < 84) node.holdsWrites = !node.holdsWrites;
    else if (choice < 87) cluster.post(node.persist(1 + this.#random.below(3)));
    else if (choice < 89) this.#crash(node.id);
    else if (choice < 91 && node.applied > node.base.index + 1 && node.held.length === 0) node.compact(node.applied - 1);
    else if (choice < 93 && node.fetches[0] !== undefined) this.#stream(node.id, node.fetches[0].from);
    else if (choice < 95) this.#change();
    else if (choice < 97) core.readIndex(this.#names++);
    else if (choice < 98) core.transferLeadership(undefined);
    else core.setFitness((['fit', 'low', 'sealed'] as const)[this.#random.below(3)] ?? 'fit');
  }

  #deliver(): void {
    for (let burst = this.#random.below(6); burst >= 0; burst--) {
      const at = this.#random.below(4) === 0 ? this.#random.below(Math.max(1, this.#cluster.wire.length)) : 0;
      const message = this.#cluster.wire[at];
      if (message === undefined) return;
      if (this.#random.below(20) > 0) this.#cluster.wire.splice(at, 1);
      if (this.#random.below(15) > 0) this.#cluster.deliver(message);
    }
  }

  #pass(): void {
    this.#cluster.nowMs += this.#random.below(6) > 0 ? this.#random.below(100) : 900;
    for (const { core } of this.#cluster.nodes.values()) core.tick(this.#cluster.nowMs);
  }

  #crash(id: number): void {
    const node = this.#cluster.node(id);
    node.persist(this.#random.below(node.held.length + 1));
    node.restart();
  }

  #stream(id: number, from: number): void {
    const source = this.#cluster.node(from);
    const offered = this.#cluster.node(id).fetches[0]?.meta.index ?? 0;
    this.#cluster.node(id).receive(source.applied < offered ? undefined : source);
  }

  #change(): void {
    const members = [1, 2, 3, 4, 5]
      .filter(() => this.#random.below(3) === 0)
      .filter((id) => this.#cluster.nodes.has(id))
      .map((id) => ({ id, to: parts[this.#random.below(3)] ?? 'none' }));
    for (const { core } of this.#cluster.nodes.values()) core.proposeConf({ kind: 'change', members });
  }

  #check(): void {
    for (const { id, core, appliedEntries } of this.#cluster.nodes.values()) {
      core.checkInvariants();
      const { role, term, commitIndex, lastIndex } = core.status();
      if (role === 'leader') {
        expect(this.#leaders.get(term) ?? id, `one leader in term ${term}`).to.equal(id);
        this.#leaders.set(term, id);
      }
      for (const [index, { term: entryTerm, type, data }] of appliedEntries) {
        const entry = `${entryTerm} ${type} ${text(data)}`;
        expect(this.#committed.get(index) ?? entry, `entry ${index} is the same everywhere`).to.equal(entry);
        this.#committed.set(index, entry);
      }
      this.transcript.push(`${id} ${role} ${term} ${commitIndex} ${lastIndex} ${core.leaseRead(this.#cluster.nowMs)}`);
    }
    this.transcript.push(JSON.stringify(this.#cluster.wire.at(-1)));
  }
}

describe('cores under random schedules', () => {
  for (let seed = 1; seed <= 40; seed++) {
    it(`keep to one leader per term and one entry per index, and repeat themselves for the same calls (seed ${seed})`, () => {
      const [once, twice] = [new Schedule(seed), new Schedule(seed)];
      for (const schedule of [once, twice]) schedule.play(400);
      expect(once.transcript).to.deep.equal(twice.transcript);
    });
  }
});
