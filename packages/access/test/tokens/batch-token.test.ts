import { expect } from 'chai';
import fc from 'fast-check';
import { batchTokenCharsMax, openBatchToken, sealBatchToken } from '../../src/tokens/batch-token.ts';
import { hour, refusal, setup } from '../fixtures.ts';
import { tokenRecord } from '../token-record.ts';

const key = Buffer.alloc(32, 7);
const record = tokenRecord({ type: 'batch', accessor: '', policies: ['a', 'b'], meta: { user: 'ü' } });

describe('the text of a batch token', () => {
  it('contains its record, encrypted, and differs each time', () => {
    const [one, other] = [sealBatchToken(key, record), sealBatchToken(key, record)];
    expect(one)
      .to.match(/^b\.[\w-]+$/)
      .and.not.equal(other);
    expect(openBatchToken(key, one)).to.deep.equal(record);
    expect(Buffer.from(one.slice(2), 'base64url').toString('latin1')).not.to.include('user');
  });

  it('is invalid under another key, with any other character and in any other spelling', () => {
    const token = sealBatchToken(key, record);
    expect(openBatchToken(Buffer.alloc(32, 8), token)).to.equal(undefined);
    fc.assert(
      fc.property(fc.integer({ min: 2, max: token.length - 1 }), fc.constantFrom(...'AZaz09-_'), (at, character) => {
        fc.pre(token[at] !== character);
        expect(openBatchToken(key, token.slice(0, at) + character + token.slice(at + 1))).to.equal(undefined);
      }),
    );
    for (const spelled of [`${token}=`, `${token}\n`, `b. ${token.slice(2)}`, `${token}A`, 'b.', `b.${'A'.repeat(60)}`])
      expect(openBatchToken(key, spelled), spelled).to.equal(undefined);
  });

  it('is refused when it would be too long', () => {
    expect(() => sealBatchToken(key, { ...record, meta: { a: 'x'.repeat(batchTokenCharsMax) } })).to.throw(/are too long/);
  });
});

describe('a batch token', () => {
  const request = { type: 'batch', policies: ['p'], ttlS: hour };

  it('grants its policies without a stored record', async () => {
    const { create, who, records } = await setup();
    await create(request); // the first batch token creates the key
    const before = await records('access/');
    const { token, record: made } = await create(request);
    expect(await records('access/')).to.deep.equal(before);
    expect(made).to.deep.include({ type: 'batch', accessor: '', renewable: false, ttlS: hour, policies: ['default', 'p'] });
    expect((await who(token)).record).to.deep.equal(made);
  });

  it('is authenticated without a read when it is cached', async () => {
    const { create, tokens, store, who } = await setup();
    const { token } = await create(request);
    await who(token);
    const { reads } = store;
    expect(tokens.authenticate(token)).to.include({ root: false });
    expect(store.reads).to.equal(reads);
  });

  it('ends when it expires and when its parent is revoked, cached or not', async () => {
    const { create, registry, tokens, clock, good } = await setup();
    const { token: parent } = await create({ policies: ['p'] });
    const { token: child } = await create(request, { by: parent });
    const { token: orphan } = await create({ ...request, noParent: true });
    expect([await good(child), await good(orphan)]).to.deep.equal([true, true]);
    await registry.revoke({ token: parent });
    expect([await good(child), await good(orphan)]).to.deep.equal([false, true]);
    tokens.clear();
    expect([await good(child), await good(orphan)]).to.deep.equal([false, true]);
    clock.now += hour * 1000;
    expect(await good(orphan)).to.equal(false);
  });

  it('stays valid when its parent is renewed', async () => {
    const { create, registry, good } = await setup();
    const { token: parent } = await create({ policies: ['p'], ttlS: hour });
    const { token: child } = await create(request, { by: parent });
    expect(await good(child)).to.equal(true);
    await registry.renew({ token: parent }, 2 * hour);
    expect(await good(child)).to.equal(true);
  });

  it('is loaded again when its parent is renewed during the read of its policies', async () => {
    const { create, registry, policies, store, good } = await setup();
    await policies.write('p', 'path "a" { capabilities = ["read"] }');
    const { token: parent } = await create({ policies: ['p'], ttlS: hour });
    const { token: child } = await create(request, { by: parent });
    store.afterGet = async (path) => {
      if (path !== 'access/policy/p') return;
      delete store.afterGet;
      await registry.renew({ token: parent }, 2 * hour);
    };
    policies.clear();
    expect(await good(child)).to.equal(true);
    expect(store).not.to.have.property('afterGet');
  });

  it('is not returned if its creator was revoked at the same time', async () => {
    const { create, registry, store } = await setup();
    const { token: by } = await create({ policies: ['p'] });
    store.afterGet = async (path) => {
      if (path !== 'access/batch-key') return;
      delete store.afterGet;
      await registry.revoke({ token: by });
    };
    expect(await refusal(create({ ...request, noParent: true }, { by, privileged: true }))).to.match(/^bad_token/);
  });

  it('can be neither renewed nor revoked, and creates no tokens', async () => {
    const { create, registry } = await setup();
    const { token } = await create(request);
    expect(await refusal(registry.renew({ token }, 0))).to.match(/batch tokens cannot be renewed/);
    expect(await refusal(registry.revoke({ token }))).to.match(/batch tokens cannot be revoked/);
    expect(await refusal(registry.revokeAlone({ token }))).to.match(/batch tokens cannot be revoked/);
    expect(await refusal(create({}, { by: token }))).to.match(/batch tokens cannot create/);
  });

  it('is invalid after the key that encrypts batch tokens is deleted', async () => {
    const { create, store, good } = await setup();
    const { token } = await create({ ...request, noParent: true });
    expect(await good(token)).to.equal(true);
    await store.commit({ conditions: [], writes: [{ path: 'access/batch-key', value: null }] });
    expect(await good(token)).to.equal(false);
  });
});
