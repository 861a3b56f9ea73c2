import { applyTransaction, type Change, type Transaction } from '@transitd/storage-fsm';
import { expect } from 'chai';
import fc from 'fast-check';
import { planCommit, unpackingOf, whileActive } from '../../src/commit/plan.ts';
import { Copy, CopyFault } from '../../src/copy/copy.ts';
import { keysBelow } from '../../src/copy/keys.ts';
import type { RevisionEvents } from '../../src/copy/watch-revisions.ts';
import { FakeServer } from '../fake/fake-server.ts';

const keys = keysBelow('test');
const rowsOf = (server: FakeServer) => ({ revision: server.revision, rows: server.rows(keys.start, keys.end) });

async function* pagesOf<Row>(revision: number, rows: readonly Row[], size: number) {
  for (let at = 0; at === 0 || at < rows.length; at += size) yield { revision, rows: rows.slice(at, at + size) };
}

interface Seen {
  readonly value: string;
  readonly revision: number;
}

const recordsOf = (copy: Copy): Record<string, Seen> =>
  Object.fromEntries(
    [...copy.paths({ prefix: '' })].map((path) => {
      const record = copy.get(path);
      return [path, { value: Buffer.from(record?.value ?? []).toString(), revision: record?.revision ?? 0 }];
    }),
  );

/** An active node without a network: plans from its copy, executes at once, and follows the server. */
class Writer {
  readonly server = new FakeServer();
  readonly copy: Copy;
  readonly revisions: RevisionEvents[] = [];
  readonly changes: Change[] = [];
  readonly model = new Map<string, Seen>();
  #attempts = 0;
  #activeRevision: number;

  constructor() {
    this.copy = new Copy(keys, rowsOf(this.server));
    this.#activeRevision = this.server.txn({
      compares: [],
      success: [{ kind: 'put', key: keys.active, value: Buffer.from('1 a') }],
      failure: [],
    }).revision;
    this.follow();
  }

  readonly attempt = (): string => {
    this.#attempts += 1;
    return `attempt-${this.#attempts}`;
  };

  /** Commits in full, but writes only so many batches of a staged transaction to the keys of its records. */
  commit(transaction: Transaction, batches: number): 'committed' | 'conflict' {
    const effect = applyTransaction(transaction, (path) => this.model.get(path)?.revision ?? 0);
    const plan = planCommit({ command: transaction, copy: this.copy, keys, attempt: this.attempt() });
    if (plan.kind === 'staged') for (const chunk of plan.chunks) this.#write({ compares: [], success: [chunk], failure: [] });
    const answer = this.#write(plan.body);
    const isConflict = plan.kind === 'direct' && plan.isConflict;
    expect(answer.answers[0]?.txn?.succeeded).to.equal(true);
    expect(isConflict).to.equal(effect === 'conflict');
    if (effect !== 'conflict')
      for (const { path, value } of effect.writes) {
        if (value === null) this.model.delete(path);
        else this.model.set(path, { value: Buffer.from(value).toString(), revision: answer.revision });
      }
    this.unpack(batches);
    return isConflict ? 'conflict' : 'committed';
  }

  unpack(batches: number): void {
    const { staged } = this.copy;
    if (staged === undefined) return;
    for (const success of unpackingOf(staged, 0, keys, this.attempt).slice(0, batches))
      this.#write({ compares: [], success, failure: [] });
  }

  follow(): void {
    for (const revision of this.server.events(this.copy.revision + 1, keys.start, keys.end)) {
      this.revisions.push(revision);
      const changes = this.copy.apply(revision);
      if (changes === 'replaced') throw new Error('there was no restore');
      this.changes.push(...changes);
    }
  }

  #write(body: Parameters<typeof whileActive>[2]) {
    const answer = this.server.txn(whileActive(keys, this.#activeRevision, body));
    this.follow();
    return answer;
  }
}

const put = (path: string, value: string) => ({ path, value: Buffer.from(value) });
const many = (count: number, prefix: string) => Array.from({ length: count }, (_, i) => put(`${prefix}/${i}`, `${i}`));

const step = fc.record({
  writes: fc.uniqueArray(
    fc.record({ path: fc.constantFrom('a', 'b', 'c/d', 'é'), value: fc.option(fc.constantFrom('1', '2')) }),
    {
      selector: ({ path }) => path,
      maxLength: 3,
    },
  ),
  conditions: fc.array(fc.record({ path: fc.constantFrom('a', 'b'), isRight: fc.boolean() }), { maxLength: 2 }),
  isLarge: fc.boolean(),
  /** How far a staged transaction is unpacked before the node fails; the next commit completes that first. */
  batches: fc.integer({ min: 0, max: 4 }),
});

function play(steps: readonly (typeof step extends fc.Arbitrary<infer Step> ? Step : never)[]): Writer {
  const writer = new Writer();
  for (const { writes, conditions, isLarge, batches } of steps) {
    writer.unpack(Number.POSITIVE_INFINITY);
    const own = writes.map(({ path, value }) => (value === null ? { path, value } : put(path, value)));
    writer.commit(
      {
        writes: isLarge ? [...own, ...many(150, 'large')] : own,
        conditions: conditions.map(({ path, isRight }) => ({
          path,
          revision: (writer.model.get(path)?.revision ?? 0) + (isRight ? 0 : 1),
        })),
      },
      batches,
    );
    expect(recordsOf(writer.copy)).to.deep.equal(Object.fromEntries(writer.model));
    expect(recordsOf(new Copy(keys, rowsOf(writer.server)))).to.deep.equal(Object.fromEntries(writer.model));
  }
  return writer;
}

describe('the copy of a state in etcd', () => {
  it('is the same by watch and by reading, after every commit and at every point of writing a staged one', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 5 }), (steps) => {
        play(steps);
      }),
      { numRuns: 60 },
    );
  });

  it('continues from every earlier reading to the same state', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), fc.nat(), (steps, at) => {
        const { server, copy } = play(steps);
        const revision = 1 + (at % server.revision);
        const other = new Copy(keys, { revision, rows: server.rows(keys.start, keys.end, revision) });
        for (const one of server.events(revision + 1, keys.start, keys.end)) other.apply(one);
        expect(recordsOf(other)).to.deep.equal(recordsOf(copy));
        expect(other.marker).to.deep.equal(copy.marker);
        expect(other.staged?.revision).to.equal(copy.staged?.revision);
      }),
      { numRuns: 60 },
    );
  });

  it('is the same whether its rows arrive at once or in pages', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 4 }), fc.integer({ min: 1, max: 200 }), async (steps, size) => {
        const { server, copy } = play(steps);
        const { revision, rows } = rowsOf(server);
        const paged = await Copy.of(keys, pagesOf(revision, rows, size));
        expect(paged.revision).to.equal(revision);
        expect(recordsOf(paged)).to.deep.equal(recordsOf(copy));
        expect(paged.marker).to.deep.equal(copy.marker);
        expect([paged.staged?.revision, paged.hasChunks]).to.deep.equal([copy.staged?.revision, copy.hasChunks]);
      }),
      { numRuns: 30 },
    );
  });

  it('notices every lost event of a commit, at the latest with the next commit', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 3 }), fc.nat(), (steps, at) => {
        const writer = play(steps);
        writer.unpack(Number.POSITIVE_INFINITY);
        writer.commit({ conditions: [], writes: [put('last', 'one')] }, 0);
        const all = writer.revisions.flatMap(({ revision, events }) => events.map((event) => ({ revision, event })));
        const commits = new Set(all.filter(({ event }) => event.row.key === keys.marker).map(({ revision }) => revision));
        const isUnpacked = (key: string, deleted: boolean): boolean => deleted && key !== keys.marker;
        const candidates = all.filter(
          ({ revision, event }) => commits.has(revision) && !isUnpacked(event.row.key, event.deleted),
        );
        const { event: lost } = candidates[at % (candidates.length - 1)] ?? {};
        const other = new Copy(keys, { revision: 1, rows: [] });
        const apply = (): void => {
          for (const { revision, events } of writer.revisions) {
            const left = events.filter((event) => event !== lost);
            if (left.length > 0) other.apply({ revision, events: left });
          }
        };
        expect(apply).to.throw(CopyFault);
      }),
      { numRuns: 60 },
    );
  });

  it('notices a lost deletion of a commit', () => {
    const writer = new Writer();
    writer.commit({ conditions: [], writes: [put('a', '1')] }, 0);
    writer.commit({ conditions: [], writes: [{ path: 'a', value: null }] }, 0);
    const other = new Copy(keys, { revision: 1, rows: [] });
    const [active, created, deleted] = writer.revisions;
    if (active === undefined || created === undefined || deleted === undefined) throw new Error('three revisions');
    other.apply(active);
    other.apply(created);
    const left = deleted.events.filter((event) => !event.deleted);
    expect(() => other.apply({ ...deleted, events: left })).to.throw(CopyFault, 'not complete');
    expect(recordsOf(other)).to.have.property('a');
  });

  it('reports the changes of a staged transaction once, at the revision at which it takes effect', () => {
    const writer = new Writer();
    writer.commit({ conditions: [], writes: many(150, 'x') }, Number.POSITIVE_INFINITY);
    expect(writer.changes).to.have.length(150);
    expect(new Set(writer.changes.map(({ revision }) => revision)).size).to.equal(1);
    expect(writer.copy.staged).to.equal(undefined);
    expect(writer.copy.hasChunks).to.equal(false);
    expect(
      writer.commit({ conditions: [{ path: 'x/7', revision: writer.copy.get('x/7')?.revision ?? 0 }], writes: [] }, 0),
    ).to.equal('committed');
  });

  it('refuses a record that changed without a commit', () => {
    const writer = new Writer();
    const foreign = { kind: 'put', key: keys.record(0, 'a'), value: Buffer.from('foreign') } as const;
    writer.server.txn({ compares: [], success: [foreign], failure: [] });
    expect(() => writer.follow()).to.throw(CopyFault, 'without a commit');
  });
});
