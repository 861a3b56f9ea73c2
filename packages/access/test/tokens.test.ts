import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { AccessError, initialAccess, Tokens } from '../src/index.ts';
import { encodeToken } from '../src/records.ts';
import { tokenPath } from '../src/token.ts';
import { gatedStore } from './gated-store.ts';

async function withRoot() {
  const store = gatedStore(memoryStore());
  const { rootToken, writes } = initialAccess({ now: 1000 });
  await store.commit({ conditions: [], writes });
  const key = Buffer.from(writes.find(({ path }) => path === 'access/token-key')?.value ?? []).subarray(1);
  const pathOf = (token: string): string => tokenPath(key, token);
  const add = (token: string) =>
    store.commit({
      conditions: [],
      writes: [
        { path: pathOf(token), value: encodeToken({ accessor: `of ${token}`, policies: ['p'], displayName: 'd', createdMs: 0 }) },
      ],
    });
  const remove = (token: string) => store.commit({ conditions: [], writes: [{ path: pathOf(token), value: null }] });
  return { store, rootToken, tokens: new Tokens({ store }), add, remove, pathOf };
}

const rewriteKey = async (store: Store, byte: number): Promise<void> => {
  await store.commit({
    conditions: [],
    writes: [{ path: 'access/token-key', value: Buffer.concat([Buffer.of(1), Buffer.alloc(32, byte)]) }],
  });
};

describe('Tokens', () => {
  it('knows the root token', async () => {
    const { tokens, rootToken } = await withRoot();
    const principal = await tokens.authenticate(rootToken);
    expect(principal).to.deep.include({ policies: ['root'], displayName: 'root', root: true });
    expect(principal?.accessor)
      .to.match(/^[0-9A-Za-z]{24}$/)
      .and.not.equal(rootToken.slice(2));
  });

  it('answers at once, without a read, when the token is in memory', async () => {
    const { store, tokens, rootToken } = await withRoot();
    const principal = await tokens.authenticate(rootToken);
    const { reads } = store;
    expect(tokens.authenticate(rootToken)).to.equal(principal);
    expect(store.reads).to.equal(reads);
  });

  it('gives out principals that nobody can change', async () => {
    const { tokens, rootToken } = await withRoot();
    const principal = await tokens.authenticate(rootToken);
    expect(Object.isFrozen(principal) && Object.isFrozen(principal?.policies)).to.equal(true);
  });

  it('knows no other token, however close', async () => {
    const { tokens, rootToken } = await withRoot();
    await tokens.authenticate(rootToken);
    for (const token of ['', 's.', rootToken.slice(0, -1), `${rootToken}x`, ` ${rootToken}`, rootToken.toLowerCase(), 'garbage'])
      expect(await tokens.authenticate(token), token).to.equal(undefined);
  });

  it('does no work for what cannot be a token', async () => {
    const { store, tokens, rootToken } = await withRoot();
    await tokens.authenticate(rootToken);
    const { reads } = store;
    for (const token of ['', 'x'.repeat(1025), 'a\nb', `${rootToken}\0`, 'a\u007fb', 'a\u0085b'])
      expect(tokens.authenticate(token), JSON.stringify(token)).to.equal(undefined);
    expect(store.reads).to.equal(reads);
  });

  it('keeps no memory of unknown tokens: each is looked up, and found as soon as it exists', async () => {
    const { store, tokens, add } = await withRoot();
    expect(await tokens.authenticate('later')).to.equal(undefined);
    const { reads } = store;
    expect(await tokens.authenticate('later')).to.equal(undefined);
    expect(store.reads).to.equal(reads + 1);
    await add('later');
    expect(await tokens.authenticate('later')).to.deep.include({ accessor: 'of later', root: false });
  });

  it('forgets a token when its record changes or goes, and only that one', async () => {
    const { store, tokens, rootToken, add, remove } = await withRoot();
    await add('other');
    await tokens.authenticate('other');
    await tokens.authenticate(rootToken);
    await remove('other');
    expect(await tokens.authenticate('other')).to.equal(undefined);
    const { reads } = store;
    expect(tokens.authenticate(rootToken)).to.include({ root: true });
    expect(store.reads).to.equal(reads);
  });

  it('neither answers nor keeps what a look-up read before the token was removed', async () => {
    const { store, tokens, add, remove, pathOf } = await withRoot();
    await add('gone');
    store.afterGet = async (path) => {
      if (path !== pathOf('gone')) return;
      delete store.afterGet;
      await remove('gone');
    };
    expect(await tokens.authenticate('gone')).to.equal(undefined);
    expect(await tokens.authenticate('gone')).to.equal(undefined);
  });

  it('is not held up by changes of other tokens', async () => {
    const { store, tokens, rootToken, add } = await withRoot();
    let others = 0;
    store.afterGet = async () => {
      others += 1;
      await add(`other ${others}`);
    };
    expect(await tokens.authenticate(rootToken)).to.include({ root: true });
    expect(others).to.equal(2);
  });

  it('forgets everything when the token key changes, during a look-up too', async () => {
    const { store, tokens, rootToken } = await withRoot();
    await tokens.authenticate(rootToken);
    await rewriteKey(store, 1);
    expect(await tokens.authenticate(rootToken)).to.equal(undefined);
    store.afterGet = async () => {
      delete store.afterGet;
      await rewriteKey(store, 2);
    };
    expect(await tokens.authenticate('x')).to.equal(undefined);
  });

  it('forgets everything when it is cleared, during a look-up too', async () => {
    const { store, tokens, rootToken } = await withRoot();
    await tokens.authenticate(rootToken);
    tokens.clear();
    const { reads } = store;
    store.afterGet = async () => {
      delete store.afterGet;
      tokens.clear();
    };
    expect(await tokens.authenticate(rootToken)).to.include({ root: true });
    expect(store.reads).to.equal(reads + 4); // key and record, twice
  });

  it('keeps no more tokens than it may: the oldest makes room', async () => {
    const { store, add } = await withRoot();
    const tokens = new Tokens({ store, cachedMax: 2 });
    for (const token of ['a', 'b', 'c']) {
      await add(token);
      await tokens.authenticate(token);
    }
    expect(tokens.authenticate('a')).to.be.instanceOf(Promise);
    expect(tokens.authenticate('c')).to.include({ accessor: 'of c' });
  });

  it('says that there is no token key, and that a record is of a later format', async () => {
    const { store, tokens, pathOf } = await withRoot();
    expect(await failure(new Tokens({ store: memoryStore() }).authenticate('x'))).to.equal('not_initialized');
    await store.commit({ conditions: [], writes: [{ path: pathOf('new'), value: Buffer.from('{"format":2}') }] });
    expect(await failure(tokens.authenticate('new'))).to.equal('record_unreadable');
  });

  it('lets go of the store when it is closed', async () => {
    const { tokens, rootToken } = await withRoot();
    await tokens.authenticate(rootToken);
    tokens.close();
    expect(tokens.authenticate(rootToken)).to.be.instanceOf(Promise);
  });
});

async function failure(attempt: unknown): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    if (error instanceof AccessError) return error.code;
    throw error;
  }
  return 'none';
}
