import type { Change, Changes, PathPage, Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import fc from 'fast-check';
import { CacheBudget } from '../../src/keys/cache-budget.ts';
import { KeyNames, type ListRequest } from '../../src/keys/key-names.ts';
import { keyCaches, newEngine } from '../fixtures.ts';

const prefix = 'k/';

/** A store with names only. If `waits`, each page waits until it is released, and contains the state at the time of its request. */
class NameStore {
  readonly there = new Set<string>();
  readonly waiting: (() => void)[] = [];
  readonly names: KeyNames;
  reads = 0;
  waits = false;
  error: Error | undefined;
  #tell: ((changes: Changes) => void) | undefined;

  constructor(names: readonly string[] = [], perPage = 2, budget = new CacheBudget(2 ** 24)) {
    for (const name of names) this.there.add(name);
    const store: Pick<Store, 'paths' | 'watch'> = {
      paths: async ({ after = '' }) => {
        if (after === prefix) this.reads += 1;
        const all = [...this.there].sort().filter((name) => prefix + name > after);
        const paths = all.slice(0, perPage).map((name) => prefix + name);
        const last = paths.at(-1);
        const page: PathPage = all.length > perPage && last !== undefined ? { paths, next: last } : { paths };
        if (this.waits) await new Promise<void>((go) => this.waiting.push(go));
        if (this.error !== undefined) throw this.error;
        return page;
      },
      watch: (_prefix, listener) => {
        this.#tell = listener;
        return () => {
          this.#tell = undefined;
        };
      },
    };
    this.names = new KeyNames(store as Store, prefix, budget);
  }

  /** Reads a list to its end. */
  async list(request: ListRequest = {}): Promise<readonly string[]> {
    const found = await this.names.list(request);
    if (!('first' in found)) return found;
    const all = [...found.first];
    for await (const page of found.rest) all.push(...page);
    return all;
  }

  apply(...changes: readonly (readonly [name: string, isThere: boolean])[]): void {
    for (const [name, isThere] of changes) {
      if (isThere) this.there.add(name);
      else this.there.delete(name);
    }
    this.#tell?.(changes.map(([name, isThere]): Change => ({ path: prefix + name, revision: 1, deleted: !isThere })));
  }

  replace(names: readonly string[]): void {
    this.there.clear();
    for (const name of names) this.there.add(name);
    this.#tell?.('everything');
  }

  get sorted(): string[] {
    return [...this.there].sort();
  }

  /** Releases one page after the other, with a step before each, until `answer` is complete. */
  async go<T>(answer: Promise<T>, before: (page: number) => void = () => undefined): Promise<T> {
    let isThere = false;
    const end = (): void => {
      isThere = true;
    };
    answer.then(end, end);
    for (let page = 0; !isThere; ) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      const next = this.waiting.shift();
      if (next === undefined) continue;
      before(page);
      page += 1;
      next();
    }
    return answer;
  }
}

describe('the names of keys', () => {
  it('follow every change, and are read from the store once', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('a', 'B', 'c', 'd.1', 'd', '_e', '10', '2'), { maxLength: 6 }),
        fc.array(fc.tuple(fc.constantFrom('a', 'B', 'c', 'd.1', 'f', '9'), fc.boolean(), fc.boolean()), { maxLength: 30 }),
        async (first, steps) => {
          const store = new NameStore(first);
          for (const [name, isThere, looks] of steps) {
            store.apply([name, isThere]);
            if (looks) expect(await store.names.list()).to.deep.equal(store.sorted);
            const behind = store.sorted.filter((each) => each > name);
            expect(await store.names.list({ after: name, limit: 2 })).to.deep.equal(behind.slice(0, 2));
            if (looks) expect(await store.names.list({ after: name })).to.deep.equal(behind);
          }
          expect(await store.names.list()).to.deep.equal(store.sorted);
          expect(store.reads, 'of the whole list').to.be.most(1);
        },
      ),
    ));

  it('include changes applied during a read, before and after the current page', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), fc.boolean()), { maxLength: 3 }), {
          minLength: 1,
          maxLength: 6,
        }),
        fc.option(fc.nat(5), { nil: undefined }),
        async (changes, replaced) => {
          const store = new NameStore(['b', 'd', 'f', 'h', 'j']);
          store.waits = true;
          const answers = [store.names.list()];
          await store.go(answers[0] as Promise<unknown>, (page) => {
            const some = changes[page];
            if (some !== undefined && some.length > 0) store.apply(...some);
            if (page === replaced) store.replace(['b', 'x', 'z']);
            answers.push(store.names.list()); // joins the read after the change
          });
          for (const answer of answers) expect(await store.go(answer)).to.deep.equal(store.sorted);
        },
      ),
    ));

  it('are the same list object until a key is added or removed', async () => {
    const store = new NameStore(['a', 'b']);
    const list = await store.names.list();
    store.apply(['a', true]);
    expect(await store.names.list()).to.equal(list);
    store.apply(['c', true], ['c', false]);
    expect(await store.names.list()).to.equal(list);
    store.apply(['c', true]);
    const longer = await store.names.list();
    expect(longer).to.deep.equal(['a', 'b', 'c']);
    expect(list, 'what was answered stays').to.deep.equal(['a', 'b']);
    expect(await store.names.list()).to.equal(longer);
  });

  it('are read again when the state of the store is replaced', async () => {
    const store = new NameStore(['a', 'b']);
    await store.names.list();
    store.replace(['c']);
    expect(await store.names.list()).to.deep.equal(['c']);
    expect(store.reads).to.equal(2);
  });

  it('are read again after too many changes', async () => {
    const store = new NameStore(['a'], 100_000);
    await store.names.list();
    store.apply(...Array.from({ length: 10_001 }, (_, i) => [`n${i}`, true] as const));
    expect(await store.names.list()).to.deep.equal(store.sorted);
    expect(store.reads).to.equal(2);
  });

  it('are not cached when they are too large, also after growing, but again after shrinking', async () => {
    const long = (i: number) => `${i}`.padEnd(400, 'x');
    const many = (from: number, count: number) => Array.from({ length: count }, (_, i) => long(from + i));
    const store = new NameStore(many(0, 15_000), 100_000);
    expect(await store.names.list()).to.equal(await store.names.list());
    store.apply(...many(15_000, 9_000).map((name) => [name, true] as const));
    expect(await store.names.list()).to.have.length(24_000);
    expect(store.reads).to.equal(1);
    for (let i = 0; i < 2; i++) expect(await store.list()).to.deep.equal(store.sorted);
    expect(store.reads).to.equal(3);
    store.apply(...many(15_000, 9_000).map((name) => [name, false] as const));
    expect(await store.list(), 'read to its end, which shows that it is short').to.have.length(15_000);
    expect(await store.names.list()).to.equal(await store.names.list());
    expect(store.reads).to.equal(5);
  });

  it('are read page by page while the caller reads them, when they are too many to be held in memory', async () => {
    const names = Array.from({ length: 30_000 }, (_, i) => `${String(i).padStart(6, '0')}${'x'.repeat(400)}`);
    const store = new NameStore(names, 1000);
    store.waits = true;
    let pages = 0;
    const found = await store.go(store.names.list(), () => {
      pages += 1;
    });
    if (!('first' in found)) throw new Error('the whole list was returned');
    expect(found.first).to.deep.equal(names.slice(0, 1000));
    expect(pages, 'as many as may be held in memory, and the first one again').to.be.most(22);
    store.apply([names[500] ?? '', false], [names[1500] ?? '', false], ['zzz', true]);
    const second = await store.go(found.rest.next());
    expect(second.value, 'as of the time when it is read').to.deep.equal(names.slice(1000, 2001).filter((_, i) => i !== 500));
    await found.rest.return(undefined);
    expect(store.waiting).to.have.length(0);
    const limited = await store.go(store.list({ after: names[28_999] ?? '', limit: 20_000 }));
    expect(limited).to.deep.equal([...names.slice(29_000), 'zzz']);
    expect(await store.go(store.list({ limit: 12_001 }))).to.have.length(12_001);
    const joined = [store.names.list(), store.names.list()];
    for (const each of joined) expect(await store.go(each)).to.have.property('first');
  });

  it('are read only as far as requested when they are not cached', async () => {
    const store = new NameStore(['a', 'b', 'c', 'd', 'e', 'f']);
    store.waits = true;
    let pages = 0;
    const count = (page: number): void => {
      pages = page + 1;
    };
    expect(await store.go(store.names.list({ after: 'a', limit: 3 }), count)).to.deep.equal(['b', 'c', 'd']);
    expect(pages, 'of two names').to.equal(2);
  });

  it('are read again after a failed read', async () => {
    const store = new NameStore(['a']);
    store.error = new Error('sealed');
    expect(await store.names.list().catch((error: Error) => error.message)).to.equal('sealed');
    store.error = undefined;
    expect(await store.names.list()).to.deep.equal(['a']);
  });

  it('are not cached after close, also during a read', async () => {
    const store = new NameStore(['a', 'b', 'c']);
    store.waits = true;
    const answer = store.names.list();
    expect(await store.go(answer, (page) => page === 1 && store.names.close())).to.deep.equal(['a', 'b', 'c']);
    store.apply(['d', true]); // no watcher is left
    expect(await store.go(store.names.list())).to.deep.equal(['a', 'b', 'c', 'd']);
  });
});

describe('the view of a key', () => {
  it('is made once while the key is unchanged', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'ecdsa-p256' });
    const view = await engine.readKey('k');
    expect(await engine.readKey('k')).to.equal(view);
    await engine.rotateKey('k');
    const rotated = await engine.readKey('k');
    expect(rotated.versions.map(({ version }) => version)).to.deep.equal([1, 2]);
    await engine.configureKey('k', { minDecryptionVersion: 2, deletionAllowed: true });
    expect((await engine.readKey('k')).versions.map(({ version }) => version)).to.deep.equal([2]);
    await engine.deleteKey('k');
    await engine.createKey('k', { type: 'aes256-gcm96' });
    expect(await engine.readKey('k')).to.include({ type: 'aes256-gcm96', latestVersion: 1 });
    expect(view.versions, 'what was answered stays').to.have.length(1);
  });

  it('is not cached if it does not fit; the key stays cached', async () => {
    const { engine } = newEngine({ caches: keyCaches(20_000) });
    await engine.createKey('k', { type: 'ecdsa-p256' });
    for (let i = 0; i < 7; i++) await engine.rotateKey('k');
    await engine.signing.sign('k', { input: 'b25l' });
    const revision = engine.cachedRevision('k');
    expect(revision).to.not.equal(undefined);
    const view = await engine.readKey('k');
    expect(engine.cachedRevision('k')).to.equal(revision);
    const again = await engine.readKey('k');
    expect(again).to.deep.equal(view);
    expect(again).to.not.equal(view);
  });

  it('depends on the requested context', async () => {
    const { engine } = newEngine();
    await engine.createKey('d', { type: 'ed25519', derived: true });
    const keyOf = async (context?: string) => (await engine.readKey('d', { context })).versions[0]?.pair?.publicKey;
    const [none, one, other] = [await keyOf(), await keyOf('b25l'), await keyOf('b3RoZXI=')];
    expect(none).to.equal('');
    expect(one).to.not.equal(other).and.not.equal('');
    expect([await keyOf(), await keyOf('b25l'), await keyOf('b3RoZXI=')]).to.deep.equal([none, one, other]);
  });
});
