import { expect } from 'chai';
import { pageBytesMax, pageRecordsMax } from '../../src/store/range.ts';
import type { Changes, Replica } from '../../src/store/store.ts';
import type { Transaction } from '../../src/store/transaction.ts';

export interface OpenedReplica {
  readonly replica: Replica;
  close(): Promise<void>;
}

const bytes = (text: string): Uint8Array => Buffer.from(text);
const put = (path: string, text: string) => ({ path, value: bytes(text) });
const remove = (path: string) => ({ path, value: null });
const write = (...writes: Transaction['writes']): Transaction => ({ conditions: [], writes });

/** The contract of every store; `open` returns an empty replica that is the leader. */
export function storeSuite(name: string, open: () => Promise<OpenedReplica>): void {
  describe(`${name} as a store`, () => {
    let opened: OpenedReplica;
    let store: Replica;
    beforeEach(async () => {
      opened = await open();
      store = opened.replica;
    });
    afterEach(() => opened.close());

    const text = async (path: string) => {
      const record = await store.get(path);
      return record && Buffer.from(record.value).toString();
    };
    const listed = async (query: Parameters<Replica['range']>[0]) => (await store.range(query)).records.map(({ path }) => path);

    it('is empty at first', async () => {
      expect(await store.get('a')).to.equal(undefined);
      expect(await store.range({ prefix: '' })).to.deep.equal({ records: [] });
    });

    it('sets the revision of a record to the index of the entry that wrote it', async () => {
      const first = await store.commit(write(put('a', '1'), put('b', '1')));
      const second = await store.commit(write(put('b', '2')));
      expect(second).to.deep.equal({ outcome: 'committed', index: first.index + 1, revision: first.index + 1 });
      expect((await store.get('a'))?.revision).to.equal(first.index);
      expect((await store.get('b'))?.revision).to.equal(second.index);
      expect(await text('b')).to.equal('2');
    });

    it('deletes a record, which conditions then see as absent', async () => {
      await store.commit(write(put('a', '1')));
      await store.commit(write(remove('a')));
      expect(await store.get('a')).to.equal(undefined);
      const again = await store.commit({ conditions: [{ path: 'a', revision: 0 }], writes: [put('a', '2')] });
      expect(again.outcome).to.equal('committed');
    });

    it('distinguishes an empty value from an absent record', async () => {
      await store.commit(write(put('a', '')));
      expect((await store.get('a'))?.value).to.have.length(0);
    });

    it('writes nothing when one condition no longer holds', async () => {
      const { index } = await store.commit(write(put('a', '1')));
      const conflict = await store.commit({
        conditions: [
          { path: 'a', revision: index },
          { path: 'b', revision: index },
        ],
        writes: [put('a', '2'), put('c', '2')],
      });
      expect(conflict).to.deep.equal({ outcome: 'conflict', index: index + 1, revision: index + 1 });
      expect(await listed({ prefix: '' })).to.deep.equal(['a']);
      expect(await text('a')).to.equal('1');
    });

    it('commits only one of two transactions based on the same state', async () => {
      const create = { conditions: [{ path: 'a', revision: 0 }], writes: [put('a', '1')] };
      const outcomes = await Promise.all([store.commit(create), store.commit(create)]);
      expect(outcomes.map(({ outcome }) => outcome)).to.deep.equal(['committed', 'conflict']);
    });

    it('counts every written value, also in conflicts, but no deletions', async () => {
      await store.commit(write(put('a', '1'), put('b', '1'), remove('c')));
      await store.commit({ conditions: [{ path: 'a', revision: 0 }], writes: [put('a', '2')] });
      expect(store.status().valuesWritten).to.equal(3);
    });

    it('does not share bytes with its callers', async () => {
      const value = bytes('one');
      const done = store.commit(write({ path: 'a', value }));
      value.fill(0);
      await done;
      (await store.get('a'))?.value.fill(0);
      for (const record of (await store.range({ prefix: '' })).records) record.value.fill(0);
      expect(await text('a')).to.equal('one');
    });

    it('lists a prefix in the order of the UTF-8 bytes of the paths', async () => {
      const sorted = ['a', 'a/b', 'a/b/c', 'a/z', 'a/é', 'a/\uffff', 'a/\u{10000}', 'a0', 'b'];
      await store.commit(write(...sorted.toReversed().map((path) => put(path, path))));
      expect(await listed({ prefix: '' })).to.deep.equal(sorted);
      expect(await listed({ prefix: 'a/' })).to.deep.equal(sorted.slice(1, 7));
      expect(await listed({ prefix: 'a/b' })).to.deep.equal(['a/b', 'a/b/c']);
      expect(await listed({ prefix: 'a/', after: 'a/z' })).to.deep.equal(['a/é', 'a/\uffff', 'a/\u{10000}']);
      expect(await listed({ prefix: 'a/', after: 'a' })).to.deep.equal(sorted.slice(1, 7));
      expect(await listed({ prefix: 'a/', after: 'b' })).to.deep.equal([]);
      expect(await listed({ prefix: 'a/b/c/' })).to.deep.equal([]);
    });

    it('continues after each page, and the last page has no next', async () => {
      await store.commit(write(...['a', 'b', 'c', 'd'].map((path) => put(path, path))));
      expect(await store.range({ prefix: '', limit: 2 })).to.have.property('next', 'b');
      expect(await listed({ prefix: '', limit: 2, after: 'b' })).to.deep.equal(['c', 'd']);
      expect(await store.range({ prefix: '', limit: 2, after: 'b' })).not.to.have.property('next');
    });

    it('lists the paths of a range, page by page, without the records', async () => {
      const sorted = ['a', 'a/b', 'a/\uffff', 'a/\u{10000}', 'a0', 'b'];
      await store.commit(write(...sorted.toReversed().map((path) => put(path, path))));
      expect(await store.paths({ prefix: '' })).to.deep.equal({ paths: sorted });
      expect(await store.paths({ prefix: 'a/', after: 'a/b' })).to.deep.equal({ paths: sorted.slice(2, 4) });
      expect(await store.paths({ prefix: 'a', limit: 2 })).to.deep.equal({ paths: ['a', 'a/b'], next: 'a/b' });
      expect(await store.paths({ prefix: 'c' })).to.deep.equal({ paths: [] });
      await store.commit(write(remove('a/b'), put('a1', '')));
      expect(await store.paths({ prefix: 'a' })).to.deep.equal({ paths: ['a', 'a/\uffff', 'a/\u{10000}', 'a0', 'a1'] });
      expect(await rejection(store.paths({ prefix: '', limit: 0 }))).to.be.instanceOf(TypeError);
    });

    it('limits a page by the number of records and by the bytes of values', async () => {
      const many = Array.from({ length: pageRecordsMax + 1 }, (_, i) => put(`many/${i}`, ''));
      const heavy = ['1', '2', '3'].map((path) => ({ path: `heavy/${path}`, value: Buffer.alloc(pageBytesMax / 2) }));
      await store.commit(write(...many, ...heavy));
      expect(await listed({ prefix: 'many/', limit: 5 * pageRecordsMax })).to.have.length(pageRecordsMax);
      expect(await store.range({ prefix: 'heavy/' })).to.have.property('next', 'heavy/2');
    });

    for (const query of [{ prefix: '', limit: 0 }, { prefix: '', limit: 1.5 }, { prefix: '\ud800' }]) {
      it(`rejects the range ${JSON.stringify(query)} with TypeError`, async () => {
        expect(await rejection(store.range(query))).to.be.instanceOf(TypeError);
      });
    }

    it('notifies a watcher of changes below its prefix once per entry, during the commit and with the new state visible', async () => {
      const calls: Changes[] = [];
      const seenWithin: Promise<unknown>[] = [];
      store.watch('a/', (changes) => {
        calls.push(changes);
        seenWithin.push(text('a/1'));
      });
      await store.commit(write(put('a/1', '1')));
      const { index } = await store.commit(write(put('a/1', '2'), put('b', '2'), remove('a/1x'), put('a/2', '2')));
      expect(calls).to.have.length(2);
      expect(calls[1]).to.deep.equal([
        { path: 'a/1', revision: index, deleted: false },
        { path: 'a/2', revision: index, deleted: false },
      ]);
      expect(await Promise.all(seenWithin)).to.deep.equal(['1', '2']);
      await store.commit(write(put('b', '3')));
      expect(calls).to.have.length(2);
      await store.commit(write(remove('a/2')));
      expect(calls[2]).to.deep.equal([{ path: 'a/2', revision: index + 2, deleted: true }]);
    });

    it('notifies no watcher of a conflict, and none after its watch has ended', async () => {
      const calls: unknown[] = [];
      const end = store.watch('', (changes) => calls.push(changes));
      await store.commit({ conditions: [{ path: 'a', revision: 9 }], writes: [put('a', '1')] });
      end();
      await store.commit(write(put('a', '1')));
      expect(calls).to.deep.equal([]);
    });

    it('notifies watchers before the commit resolves', async () => {
      const order: string[] = [];
      store.watch('a', () => order.push('watch'));
      await store.commit(write(put('a', '1'))).then(() => order.push('answer'));
      expect(order).to.deep.equal(['watch', 'answer']);
    });

    it('refuses a transaction above the entry limit with too_large and changes nothing', async () => {
      const error = await rejection(store.commit(write({ path: 'a', value: Buffer.alloc(8 * 1024 * 1024) })));
      expect(error).to.have.property('code', 'too_large');
      expect(await store.get('a')).to.equal(undefined);
    });

    it('rejects an invalid path with TypeError', async () => {
      expect(await rejection(store.commit(write(put('a//b', '1'))))).to.be.instanceOf(TypeError);
      expect(await store.get('a//b')).to.equal(undefined);
    });

    it('resolves fresh() while it leads, and reports the applied index', async () => {
      const { index } = await store.commit(write(put('a', '1')));
      await store.fresh();
      const { role, ready, appliedIndex } = store.status();
      expect({ role, ready, appliedIndex }).to.deep.equal({ role: 'leader', ready: true, appliedIndex: index });
    });
  });
}

/** Returns the reason of a rejected promise; undefined for a fulfilled one. */
export const rejection = (outcome: Promise<unknown>): Promise<unknown> =>
  outcome.then(
    () => undefined,
    (error: unknown) => error,
  );
