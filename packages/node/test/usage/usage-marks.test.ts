import { UseTally } from '@transitd/transit-engine';
import { expect } from 'chai';
import fc from 'fast-check';
import { CountedUses } from '../../src/usage/counted-uses.ts';
import { batchVersionsMax, UsageLedger } from '../../src/usage/usage-ledger.ts';
import { mergedAnswers, type NodeAnswer, recordedOf, type UsageMarks, unansweredIn } from '../../src/usage/usage-marks.ts';
import type { KeyVersionUse, UsageReport } from '../../src/usage/usage-wire.ts';

const clusterId = 'c1';
const origin = { clusterId, restoredBy: undefined };
const clock = { utcMs: () => 1000, dueMs: () => 1000, nowMs: () => 0 };

/** Returns the tally of a request that encrypted with these versions of one key. */
function tallyOf(id: string, ...versions: readonly number[]): UseTally {
  const tally = new UseTally();
  tally.keyId = id;
  for (const version of versions) tally.add('encryptions', version);
  return tally;
}

/** The record of all uses, and the active node that writes it. Any outcome of its transaction may be lost. */
class Recorder {
  marks: UsageMarks = { clusterId, nodes: {} };
  recorded = new CountedUses();

  async record(
    nodes: readonly Named[],
    { silent = [], commit }: { silent?: readonly string[]; commit: 'done' | 'lost' | 'refused' },
  ) {
    const answers = await answersOf(nodes, silent, ({ name }) => {
      const { process, batch } = recordedOf(this.marks, name);
      return { kind: 'next', process, merged: batch };
    });
    const { marks, uses } = mergedAnswers(this.marks, answers, { ...origin, nowMs: 1000 });
    if (commit === 'refused') return;
    this.marks = marks; // `lost`: the active node does not learn of it, and changes nothing else in either case
    this.recorded.merge(uses, { hasLost: false });
  }

  /** Returns the uses of a version as a look at that moment shows them. */
  async look(nodes: readonly Named[], id: string, version: number): Promise<number> {
    const answers = await answersOf(nodes, [], () => ({ kind: 'key', id }));
    const { uses } = mergedAnswers(this.marks, answers, { ...origin, nowMs: 1000 });
    return sumOf([...this.recorded.of(id), ...uses], id, version);
  }
}

interface Named {
  readonly name: string;
  readonly ledger: UsageLedger;
}

const answersOf = (
  nodes: readonly Named[],
  silent: readonly string[],
  question: (node: Named) => object,
): Promise<NodeAnswer[]> =>
  Promise.all(
    nodes.map(async (node) => {
      const answer = await node.ledger.report(question(node)); // it may be lost on the way
      return { name: node.name, answer: silent.includes(node.name) ? 'silent' : answer };
    }),
  );

const sumOf = (uses: readonly KeyVersionUse[], id: string, version: number): number =>
  uses.filter((use) => use.id === id && use.version === version).reduce((sum, { encryptions }) => sum + encryptions, 0);

const names = ['n1', 'n2', 'n3'];
const event = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('use' as const),
      node: fc.nat(2),
      id: fc.constantFrom('a', 'b'),
      version: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('record' as const),
      silent: fc.subarray(names),
      commit: fc.constantFrom('done' as const, 'lost' as const, 'refused' as const),
    }),
  },
);

describe('the uses that nodes report', () => {
  it('are each recorded once, in any order, however often answers and outcomes are lost', () =>
    fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 60 }), async (events) => {
        const nodes = names.map((name) => ({ name, ledger: new UsageLedger(clock) }));
        const recorder = new Recorder();
        const used = new Map<string, number>();
        for (const each of events) {
          if (each.kind === 'record') {
            await recorder.record(nodes, each);
            continue;
          }
          nodes[each.node]?.ledger.count('m', 'k', tallyOf(each.id, each.version));
          const key = `${each.id} ${each.version}`;
          used.set(key, (used.get(key) ?? 0) + 1);
        }
        for (const [key, times] of used) {
          const [id = '', version = ''] = key.split(' ');
          expect(await recorder.look(nodes, id, Number(version)), `a look at ${key}`).to.equal(times);
        }
        // A batch that was reported before is recorded first; what came later is in the next one.
        for (let round = 0; round < 2; round++) await recorder.record(nodes, { commit: 'done' });
        for (const [key, times] of used) {
          const [id = '', version = ''] = key.split(' ');
          expect(sumOf(recorder.recorded.of(id), id, Number(version)), key).to.equal(times);
        }
      }),
    ));

  it('of a node are none before it has reported, whatever its name is', () => {
    for (const name of ['constructor', 'toString', '__proto__'])
      expect(recordedOf({ clusterId, nodes: {} }, name)).to.deep.equal({ process: '', batch: 0 });
  });

  it('of a process that has ended do not hide those of the next one', async () => {
    const recorder = new Recorder();
    for (const times of [1, 2, 3]) {
      const nodes = [{ name: 'n1', ledger: new UsageLedger(clock) }]; // started again
      nodes[0]?.ledger.count('m', 'k', tallyOf('a', 1));
      await recorder.record(nodes, { commit: 'done' });
      expect(sumOf(recorder.recorded.of('a'), 'a', 1)).to.equal(times);
    }
  });

  it('come in batches of bounded size', async () => {
    const ledger = new UsageLedger(clock);
    const versions = Array.from({ length: batchVersionsMax + 1 }, (_, i) => i + 1);
    ledger.count('m', 'k', tallyOf('a', ...versions));
    const recorder = new Recorder();
    const first = await ledger.report({ kind: 'next', process: '', merged: 0 });
    expect(first.batch?.uses).to.have.length(batchVersionsMax);
    expect(first.hasMore).to.equal(true);
    for (let round = 0; round < 2; round++) await recorder.record([{ name: 'n1', ledger }], { commit: 'done' });
    for (const version of [1, batchVersionsMax, batchVersionsMax + 1])
      expect(sumOf(recorder.recorded.of('a'), 'a', version), String(version)).to.equal(1);
  });

  it('are asked for with known questions only', async () => {
    const ledger = new UsageLedger(clock);
    for (const question of [{}, { kind: 'all' }, { kind: 'next', process: 'p', merged: -1 }, { kind: 'key' }])
      expect(await ledger.report(question).catch((error: Error) => error.name), JSON.stringify(question)).to.equal('ZodError');
  });
});

describe('the time since which uses are counted', () => {
  const report = (more: Partial<UsageReport> = {}): UsageReport => ({
    ...{ process: 'p', follows: '', isLast: false, merged: 0, isComplete: true, rest: [], hasMore: false },
    ...more,
  });
  const counting: UsageMarks = { clusterId, sinceMs: 5, nodes: { n1: { process: 'p', batch: 3 } } };
  const withOther = (other: UsageMarks['nodes'][string]): UsageMarks => ({
    ...counting,
    nodes: { n1: { process: 'p', batch: 3 }, n2: other },
  });
  const lostBatch = { number: 4, uses: [], hasLost: true };
  const nowMs = 1000;

  for (const [title, before, answers, sinceMs] of [
    ['begins when all nodes have answered', { clusterId, nodes: {} }, [report(), report()], nowMs],
    ['does not begin while a node is silent', { clusterId, nodes: {} }, [report(), 'silent'], undefined],
    ['does not begin while a thread is silent', { clusterId, nodes: {} }, [report({ isComplete: false })], undefined],
    ['does not begin while a node does not count', { clusterId, nodes: {} }, [report(), 'unsupported'], undefined],
    ['stays when a node is silent later', counting, [report({ merged: 3 }), 'silent'], 5],
    ['stays when a thread is silent later', counting, [report({ merged: 3, isComplete: false })], 5],
    ['ends when a node with a release that does not count takes part', counting, [report(), 'unsupported'], undefined],
    ['begins again when uses were lost', counting, [report({ merged: 3, batch: lostBatch })], nowMs],
    [
      'stays when a recorded batch with lost uses is reported again',
      counting,
      [report({ batch: { ...lostBatch, number: 3 } })],
      5,
    ],
    ['begins again when a node knows of later records: a backup was restored', counting, [report({ merged: 4 })], nowMs],
    ['stays when a process ends', counting, [report({ merged: 3, isLast: true })], 5],
    ['stays when a process follows one that has ended', counting, [report({ process: 'q', follows: 'p' })], 5],
    ['begins again when a process follows one that died', counting, [report({ process: 'q', follows: 'unknown' })], nowMs],
    ['begins again when one that was never seen came between', counting, [report({ process: 'r', follows: 'q' })], nowMs],
    ['begins again when a node has a new disk', counting, [report({ process: 'q', follows: '' })], nowMs],
    ['begins again when a new node has died before it was seen', counting, [report(), report({ follows: 'unknown' })], nowMs],
    ['stays when another node joins', counting, [report({ merged: 3 }), report()], 5],
    ['stays while a node is away', withOther({ process: 'x', batch: 1 }), [report({ merged: 3 })], 5],
    [
      'begins again when a node has left that did not end',
      withOther({ process: 'x', batch: 1, goneMs: nowMs - 600_001 }),
      [report({ merged: 3 })],
      nowMs,
    ],
    ['stays when a node has left that ended', withOther({ process: 'x', batch: 1, ended: true }), [report({ merged: 3 })], 5],
    ['begins again in another cluster', { ...counting, clusterId: 'c0' }, [report({ merged: 3 })], nowMs],
    ['begins again when a snapshot was restored', { ...counting, restoredBy: 'r' }, [report({ merged: 3 })], nowMs],
  ] as const)
    it(title, () => {
      const given: readonly NodeAnswer[] = answers.map((answer, i) => ({ name: `n${i + 1}`, answer }));
      const { marks } = mergedAnswers(before, given, { ...origin, nowMs });
      expect(marks.sinceMs).to.equal(sinceMs);
      const again = mergedAnswers(marks, given, { ...origin, nowMs: 2000 });
      expect(again.marks, 'a restart of counting happens once').to.deep.equal(marks);
    });

  it('is not known to include a node that is away until it returns', () => {
    const answers: NodeAnswer[] = [{ name: 'n1', answer: report({ merged: 3 }) }];
    const away = mergedAnswers(withOther({ process: 'x', batch: 1 }), answers, { ...origin, nowMs });
    expect([away.gone, away.marks.nodes['n2']]).to.deep.equal([['n2'], { process: 'x', batch: 1, goneMs: nowMs }]);
    const other = report({ process: 'x', merged: 1 });
    const returned = mergedAnswers(away.marks, [...answers, { name: 'n2', answer: other }], { ...origin, nowMs: 2000 });
    expect([returned.gone, returned.marks.nodes['n2']]).to.deep.equal([[], { process: 'x', batch: 1 }]);
  });

  it('begins again when a node has left that never answered, and whose uses nobody knows', () => {
    const silent: readonly NodeAnswer[] = [
      { name: 'n1', answer: report({ merged: 3 }) },
      { name: 'n2', answer: 'silent' },
    ];
    const joined = mergedAnswers(counting, silent, { ...origin, nowMs: 10 });
    const left = mergedAnswers(joined.marks, silent.slice(0, 1), { ...origin, nowMs: 20 });
    expect([left.gone, left.marks.sinceMs]).to.deep.equal([['n2'], 5]);
    expect(mergedAnswers(left.marks, silent.slice(0, 1), { ...origin, nowMs: 700_000 }).marks.sinceMs).to.equal(700_000);
  });

  it('stays while many nodes come and end, although one member reports nothing new all the time', () => {
    const idle: NodeAnswer = { name: 'n1', answer: report({ merged: 3 }) };
    let marks = counting;
    for (let i = 0; i < 100; i++) {
      const other: NodeAnswer = { name: `pod-${i}`, answer: report({ process: `p${i}`, isLast: true }) };
      marks = mergedAnswers(marks, [idle, other], { ...origin, nowMs: nowMs + i }).marks;
    }
    const { marks: after, lost } = mergedAnswers(marks, [idle], { ...origin, nowMs: 10_000 });
    expect([after.sinceMs, lost, Object.keys(after.nodes).length]).to.deep.equal([5, undefined, 64]);
  });

  it('names the nodes whose uses are missing', () => {
    const answers: NodeAnswer[] = [
      { name: 'n1', answer: report() },
      { name: 'n2', answer: 'silent' },
      { name: 'n3', answer: 'unsupported' },
      { name: 'n4', answer: report({ isComplete: false }) },
    ];
    expect(unansweredIn(answers)).to.deep.equal(['n2', 'n3', 'n4']);
  });
});

describe('the uses that a thread has counted', () => {
  it('are bounded; known versions are counted on, and what is lost is reported once', () => {
    const uses = new CountedUses(2);
    uses.add('m', 'k', tallyOf('a', 1, 2, 3), 1);
    uses.add('m', 'k', tallyOf('a', 1), 2);
    expect(uses.size).to.equal(2);
    expect([uses.takeLost(), uses.takeLost()]).to.deep.equal([true, false]);
    const taken = uses.take();
    expect(taken.map(({ version, encryptions, firstMs, lastMs }) => [version, encryptions, firstMs, lastMs])).to.deep.equal([
      [1, 2, 1, 2],
      [2, 1, 1, 1],
    ]);
    expect([uses.size, uses.take()]).to.deep.equal([0, []]);
  });

  it('have times in whole milliseconds, whatever the clock says', () => {
    const uses = new CountedUses();
    for (const timeMs of [5.7, 6.2]) uses.add('m', 'k', tallyOf('a', 1), timeMs);
    expect(uses.of('a').map(({ firstMs, lastMs }) => [firstMs, lastMs])).to.deep.equal([[5, 6]]);
  });

  it('of other threads are added, with the earliest and the latest time', () => {
    const uses = new CountedUses();
    uses.add('m', 'k', tallyOf('a', 1), 5);
    const other = new CountedUses();
    other.add('m', 'k', tallyOf('a', 1, 1), 3);
    uses.merge(other.take(), { hasLost: true });
    const [use] = uses.of('a');
    expect([use?.encryptions, use?.firstMs, use?.lastMs, uses.hasLost]).to.deep.equal([3, 3, 5, true]);
  });
});
