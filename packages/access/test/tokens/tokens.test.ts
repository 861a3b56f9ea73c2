import { systemClock } from '@transitd/process';
import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import { AccessError, allows, initialAccess, Policies, type TokenRecord, Tokens } from '../../src/index.ts';
import { accessorIdOf, tokenIdOf } from '../../src/tokens/token.ts';
import { tokenPath } from '../../src/tokens/token-paths.ts';
import { tokenWrites } from '../../src/tokens/token-transactions.ts';
import type { TokensOptions } from '../../src/tokens/tokens.ts';
import { gatedStore } from '../gated-store.ts';
import { tokenRecord } from '../token-record.ts';

async function withRoot(options: Partial<TokensOptions> = {}, inner = memoryStore()) {
  const store = gatedStore(inner);
  const { rootToken, writes } = initialAccess({ now: 1000 });
  await store.commit({ conditions: [], writes });
  const key = Buffer.from(writes.find(({ path }) => path === 'access/token-key')?.value ?? []).subarray(1);
  const clock = { now: 1000 };
  const policies = new Policies({ store, clock: clockOf(() => clock.now) });
  const tokens = new Tokens({ store, policies, clock: clockOf(() => clock.now), ...options });
  const idOf = (token: string): string => tokenIdOf(key, token);
  const add = async (token: string, { parent, ...record }: Partial<TokenRecord> = {}): Promise<void> => {
    const accessor = `of ${token}`;
    const above = parent !== undefined && { parent: idOf(parent), parentAccessorId: accessorIdOf(key, `of ${parent}`) };
    const whole = tokenRecord({ accessor, ...record, ...above });
    await store.commit({
      conditions: [],
      writes: tokenWrites({ id: idOf(token), record: whole, accessorId: accessorIdOf(key, accessor) }),
    });
  };
  const pathOf = (token: string): string => tokenPath(idOf(token));
  const remove = (token: string) => store.commit({ conditions: [], writes: [{ path: pathOf(token), value: null }] });
  return { store, rootToken, policies, tokens, clock, add, remove, pathOf };
}

const rewriteKey = async (store: Store, byte: number): Promise<void> => {
  await store.commit({
    conditions: [],
    writes: [{ path: 'access/token-key', value: Buffer.concat([Buffer.of(1), Buffer.alloc(32, byte)]) }],
  });
};

describe('Tokens', () => {
  it('authenticates the root token', async () => {
    const { tokens, rootToken } = await withRoot();
    const principal = await tokens.authenticate(rootToken);
    expect(principal?.root).to.equal(true);
    expect(principal?.record).to.deep.include({ policies: ['root'], displayName: 'root' });
    expect(principal?.record.accessor)
      .to.match(/^[0-9A-Za-z]{24}$/)
      .and.not.equal(rootToken.slice(2));
  });

  it('authenticates a cached token at once, without a read', async () => {
    const { store, tokens, rootToken } = await withRoot();
    const principal = await tokens.authenticate(rootToken);
    const { reads } = store;
    expect(tokens.authenticate(rootToken)).to.equal(principal);
    expect(store.reads).to.equal(reads);
  });

  it('grants a rule until its expiration, also from the cache', async () => {
    const { tokens, policies, clock, add } = await withRoot();
    await policies.write('p', 'path "a" { capabilities = ["read"] expiration = 5 } path "b" { capabilities = ["read"] }');
    const token = `s.${'t'.repeat(24)}`;
    await add(token, { policies: ['p'] });
    const rights = async () => {
      const principal = await tokens.authenticate(token);
      return principal && [allows(principal, 'read', 'a'), allows(principal, 'read', 'b'), principal.goodUntilMs];
    };
    expect(await rights()).to.deep.equal([true, true, 5000]);
    clock.now = 4999;
    expect(await rights()).to.deep.equal([true, true, 5000]);
    clock.now = 5000;
    expect(await rights()).to.deep.equal([false, true, Number.POSITIVE_INFINITY]);
  });

  it('returns frozen principals', async () => {
    const { tokens, rootToken } = await withRoot();
    const principal = await tokens.authenticate(rootToken);
    expect(Object.isFrozen(principal) && Object.isFrozen(principal?.record)).to.equal(true);
  });

  it('does not authenticate similar tokens', async () => {
    const { tokens, rootToken } = await withRoot();
    await tokens.authenticate(rootToken);
    for (const token of ['', 's.', rootToken.slice(0, -1), `${rootToken}x`, ` ${rootToken}`, rootToken.toLowerCase(), 'garbage'])
      expect(await tokens.authenticate(token), token).to.equal(undefined);
  });

  it('does not authenticate an accessor or the id of a token', async () => {
    const { tokens, rootToken } = await withRoot();
    const principal = await tokens.authenticate(rootToken);
    for (const token of [principal?.record.accessor ?? '', principal?.id ?? ''])
      expect(await tokens.authenticate(token)).to.equal(undefined);
  });

  it('does no work for a text that cannot be a token', async () => {
    const { store, tokens, rootToken } = await withRoot();
    await tokens.authenticate(rootToken);
    const { reads } = store;
    for (const token of ['', 'x'.repeat(1025), 'a\nb', `${rootToken}\0`, 'a\u007fb', 'a\u0085b'])
      expect(tokens.authenticate(token), JSON.stringify(token)).to.equal(undefined);
    expect(store.reads).to.equal(reads);
  });

  it('does not cache unknown tokens: each is looked up and found as soon as it exists', async () => {
    const { store, tokens, add } = await withRoot();
    expect(await tokens.authenticate('later')).to.equal(undefined);
    const { reads } = store;
    expect(await tokens.authenticate('later')).to.equal(undefined);
    expect(store.reads).to.equal(reads + 1);
    await add('later');
    expect((await tokens.authenticate('later'))?.record.accessor).to.equal('of later');
  });

  it('drops only a token whose record changes or is deleted', async () => {
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

  it('neither returns nor caches a token that was deleted after its read', async () => {
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

  it('is not delayed by changes of other tokens', async () => {
    const { store, tokens, rootToken, add } = await withRoot();
    let others = 0;
    store.afterGet = async () => {
      others += 1;
      await add(`other ${others}`);
    };
    expect(await tokens.authenticate(rootToken)).to.include({ root: true });
    expect(others).to.equal(2);
  });

  it('drops everything when the token key changes, also during a lookup', async () => {
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

  it('drops everything when it is cleared, also during a lookup', async () => {
    const { store, tokens, rootToken } = await withRoot();
    await tokens.authenticate(rootToken);
    tokens.clear();
    const { reads } = store;
    store.afterGet = async () => {
      delete store.afterGet;
      tokens.clear();
    };
    expect(await tokens.authenticate(rootToken)).to.include({ root: true });
    expect(store.reads).to.equal(reads + 3); // the key twice, the record once
  });

  it('drops every token when any record may have changed, also during a lookup', async () => {
    const { store, tokens, rootToken, add, remove, pathOf } = await withRoot({}, memoryStore({ reportsEverything: true }));
    await add('gone');
    await tokens.authenticate(rootToken);
    await tokens.authenticate('gone');
    await remove('gone');
    expect(await tokens.authenticate('gone')).to.equal(undefined);
    expect(await tokens.authenticate(rootToken)).to.include({ root: true });
    await add('late');
    store.afterGet = async (path) => {
      if (path !== pathOf('late')) return;
      delete store.afterGet;
      await remove('late');
    };
    expect(await tokens.authenticate('late')).to.equal(undefined);
  });

  it('caches a bounded number of tokens and evicts the oldest', async () => {
    const { tokens, add } = await withRoot({ cachedBytesMax: 3000 });
    for (const token of ['a', 'b', 'c']) {
      await add(token);
      await tokens.authenticate(token);
    }
    expect(tokens.authenticate('a')).to.be.instanceOf(Promise);
    expect(tokens.authenticate('c')).to.include({ root: false });
  });

  it('authenticates a token with more ancestors than the cache holds', async () => {
    const { tokens, add } = await withRoot({ cachedBytesMax: 3000 });
    await add('t0');
    for (let n = 1; n < 6; n += 1) await add(`t${n}`, { parent: `t${n - 1}` });
    for (const token of ['t0', 't5', 't1', 't5', 't3'])
      expect(await tokens.authenticate(token), token).to.include({ root: false });
  });

  it('releases evicted policies beyond a bound', async () => {
    const { tokens, policies, add } = await withRoot();
    await policies.write('other', 'path "x" { capabilities = ["read"] }');
    await add('idle', { policies: ['other'] });
    await add('busy', { policies: ['big'] });
    await tokens.authenticate('idle');
    const idle = await tokens.find('idle');
    const text = `# ${'x'.repeat(1_000_000)}\npath "x" { capabilities = ["read"] }`; // about 2 MiB in memory
    let times = 0;
    for (; times < 100 && idle?.resolved !== undefined; times += 1) {
      await policies.write('big', text);
      await tokens.authenticate('busy');
    }
    expect(times).to.be.within(10, 20);
    expect(await tokens.authenticate('idle')).to.include({ root: false });
  });

  it('reports a missing token key and a record of a newer format', async () => {
    const { store, tokens, policies, pathOf } = await withRoot();
    expect(await failure(new Tokens({ store: memoryStore(), policies, clock: systemClock }).authenticate('x'))).to.equal(
      'not_initialized',
    );
    for (const [token, value] of Object.entries({ a: '{"format":2}', b: '{', c: 'null', d: '{"format":1,"accessor":"x"}' })) {
      await store.commit({ conditions: [], writes: [{ path: pathOf(token), value: Buffer.from(value) }] });
      expect(await failure(tokens.authenticate(token)), value).to.equal('record_unreadable');
    }
  });

  it('stops watching the store when it is closed', async () => {
    const { tokens, rootToken } = await withRoot();
    await tokens.authenticate(rootToken);
    tokens.close();
    expect(tokens.authenticate(rootToken)).to.be.instanceOf(Promise);
  });
});

describe('a token', () => {
  it('is refused from its expiry on, by the clock of the node alone', async () => {
    const { tokens, clock, add } = await withRoot();
    await add('t', { expiresMs: 5000 });
    expect(await tokens.authenticate('t')).to.include({ goodUntilMs: 5000 });
    clock.now = 4999;
    expect(tokens.authenticate('t')).to.include({ root: false });
    clock.now = 5000;
    expect(await tokens.authenticate('t')).to.equal(undefined);
  });

  for (const inMemory of [true, false])
    for (const [what, ends] of [
      ['is revoked', 'removed'],
      ['reaches its time', 'expired'],
    ] as const)
      it(`is refused at once when an ancestor ${what}, ${inMemory ? 'cached' : 'not cached'}`, async () => {
        const { tokens, clock, add, remove } = await withRoot();
        await add('grandparent', { expiresMs: 5000 });
        await add('parent', { parent: 'grandparent' });
        await add('child', { parent: 'parent', expiresMs: 9000 });
        await add('sibling');
        if (inMemory) expect(await tokens.authenticate('child')).to.include({ goodUntilMs: 5000 });
        if (ends === 'removed') await remove('grandparent');
        else clock.now = 5000;
        for (const token of ['child', 'parent', 'grandparent'])
          expect(await tokens.authenticate(token), token).to.equal(undefined);
        expect(await tokens.authenticate('sibling')).to.include({ root: false });
      });

  it('is refused when an ancestor is deleted during the lookup', async () => {
    const { store, tokens, add, remove, pathOf } = await withRoot();
    await add('parent');
    await add('child', { parent: 'parent' });
    store.afterGet = async (path) => {
      if (path !== pathOf('parent')) return;
      delete store.afterGet;
      await remove('parent');
    };
    expect(await tokens.authenticate('child')).to.equal(undefined);
  });

  it('has new rights as soon as one of its policies changes, and the same principal until then', async () => {
    const { store, tokens, policies, add } = await withRoot();
    await policies.write('p', 'path "a" { capabilities = ["read"] }');
    await add('t');
    const before = await tokens.authenticate('t');
    const { epoch } = tokens;
    expect(before?.acl.ruleFor('a')).not.to.equal(undefined);
    await policies.write('p', 'path "b" { capabilities = ["read"] }');
    expect(tokens.epoch).not.to.equal(epoch);
    const { reads } = store;
    const after = await tokens.authenticate('t');
    expect(after?.acl.ruleFor('a')).to.equal(undefined);
    expect(store.reads).to.equal(reads + 1); // the policy, not the token
    expect(tokens.authenticate('t')).to.equal(after);
  });

  it('gets no rights that were removed from its policy during the read', async () => {
    const { store, tokens, policies, add } = await withRoot();
    await policies.write('p', 'path "a" { capabilities = ["read"] }');
    await add('t');
    store.afterGet = async (path) => {
      if (path !== 'access/policy/p') return;
      delete store.afterGet;
      await policies.delete('p');
    };
    expect((await tokens.authenticate('t'))?.acl.ruleFor('a')).to.equal(undefined);
  });

  it('changes the epoch when it is revoked', async () => {
    const { tokens, add, remove } = await withRoot();
    await add('t');
    await tokens.authenticate('t');
    const { epoch } = tokens;
    await remove('t');
    expect(tokens.epoch).not.to.equal(epoch);
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
