import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import { Wrapping } from '../../src/tokens/wrapping.ts';
import { hour, refusal, setup } from '../fixtures.ts';

const answer = {
  owner: 'o',
  status: 200,
  body: '{"data":{"secret":"x"}}\n',
  path: 'transit/keys/k',
  ttlS: 60,
  wrappedAccessor: '',
};

async function withWrapping() {
  const all = await setup();
  const wrapping = new Wrapping({
    store: all.store,
    tokens: all.tokens,
    dates: all.registry.dates,
    clock: clockOf(() => all.clock.now),
    ttlSMax: hour,
  });
  const left = async () => (await all.records('access/')).map(({ path }) => path).filter((path) => /wrapped|due/.test(path));
  return { ...all, wrapping, left };
}

describe('a wrapped response', () => {
  it('is fetched once and leaves no record', async () => {
    const { wrapping, left } = await withWrapping();
    const { token, ...info } = await wrapping.wrap(answer);
    expect(info).to.deep.include({ path: 'transit/keys/k', createdMs: 1_000_000, ttlS: 60, wrappedAccessor: '' });
    expect(await wrapping.lookUp(token)).to.deep.include(answer);
    expect(await wrapping.unwrap(token)).to.deep.include(answer);
    expect(await wrapping.unwrap(token)).to.equal(undefined);
    expect(await wrapping.lookUp(token)).to.equal(undefined);
    expect(await left()).to.deep.equal([]);
  });

  it('is fetched by one of many concurrent requests', async () => {
    const { wrapping } = await withWrapping();
    const { token } = await wrapping.wrap(answer);
    const found = await Promise.all(Array.from({ length: 20 }, () => wrapping.unwrap(token)));
    expect(found.filter((one) => one !== undefined)).to.have.lengthOf(1);
  });

  it('has neither the token nor its accessor in a path', async () => {
    const { wrapping, records } = await withWrapping();
    const { token, accessor } = await wrapping.wrap(answer);
    const paths = (await records('access/')).map(({ path }) => path).join('\n');
    expect(paths).not.to.include(token.slice(2)).and.not.to.include(accessor);
  });

  it('expires, and the sweep deletes it', async () => {
    const { wrapping, registry, clock, left } = await withWrapping();
    const { token } = await wrapping.wrap(answer);
    clock.now += 60_000;
    expect(await wrapping.lookUp(token)).to.equal(undefined);
    expect(await wrapping.unwrap(token)).to.equal(undefined);
    expect(await left()).to.have.lengthOf(2);
    await registry.sweep(100);
    expect(await left()).to.deep.equal([]);
  });

  it('is deleted when its token is used for anything else or revoked by its accessor', async () => {
    const { wrapping, registry, who, left } = await withWrapping();
    const [one, other] = [await wrapping.wrap(answer), await wrapping.wrap(answer)];
    await registry.spend(await who(one.token));
    expect(await wrapping.unwrap(one.token)).to.equal(undefined);
    await registry.revoke({ accessor: other.accessor });
    expect(await wrapping.unwrap(other.token)).to.equal(undefined);
    await registry.sweep(100);
    expect(await left()).to.deep.equal([]);
  });

  it('is rewrapped with the same path and TTL, and the previous token becomes invalid', async () => {
    const { wrapping, clock } = await withWrapping();
    const { token } = await wrapping.wrap(answer);
    clock.now += 50_000;
    const again = await wrapping.rewrap(token);
    if (again === undefined) throw new Error('not wrapped again');
    expect(again).to.deep.include({ path: 'transit/keys/k', ttlS: 60, createdMs: clock.now });
    expect(await wrapping.unwrap(token)).to.equal(undefined);
    expect(await wrapping.rewrap(token)).to.equal(undefined);
    clock.now += 50_000;
    expect(await wrapping.unwrap(again.token)).to.deep.include({ body: answer.body });
  });

  it('is not fetched by any other token, not even root', async () => {
    const { wrapping, rootToken, create } = await withWrapping();
    const { token } = await create({ policies: ['a'], numUses: 1 });
    for (const other of [rootToken, token, 's.000000000000000000000000', 'x', ''])
      expect(await wrapping.unwrap(other), other).to.equal(undefined);
  });

  it('grants its token nothing', async () => {
    const { wrapping, who, policies } = await withWrapping();
    const { token } = await wrapping.wrap(answer);
    expect((await who(token)).record).to.deep.include({ policies: ['response-wrapping'], usesLeft: 1, renewable: false });
    expect(await refusal(policies.write('response-wrapping', 'path "*" { capabilities = ["read"] }'))).to.match(/cannot update/);
  });

  it('does not exist if it could not be written', async () => {
    const { wrapping, store, left } = await withWrapping();
    const { commit } = store;
    store.commit = () => Promise.reject(new StoreError('not_leader', 'no'));
    const failure = await wrapping.wrap(answer).catch((error: unknown) => error);
    store.commit = commit;
    expect(failure).to.be.instanceOf(StoreError);
    expect(await left()).to.deep.equal([]);
  });

  it('has a TTL of at most the maximum TTL of tokens', async () => {
    const { wrapping } = await withWrapping();
    wrapping.checkTtl(hour);
    expect(() => wrapping.checkTtl(hour + 1)).to.throw(/at most 3600s/);
  });

  describe('of a certain size', () => {
    const long = { ...answer, body: 'x'.repeat(6_000) };
    const limited = async () => {
      const all = await withWrapping();
      const { store, tokens, registry, clock } = all;
      const at = clockOf(() => clock.now);
      return {
        ...all,
        wrapping: new Wrapping({ store, tokens, dates: registry.dates, clock: at, ttlSMax: hour, ownerBytesMax: 10_000 }),
      };
    };
    const isRefused = async (wrapping: Wrapping, owner = 'o'): Promise<boolean> => {
      try {
        await wrapping.wrap({ ...long, owner });
        return false;
      } catch (error) {
        expect(String(error)).to.match(/is not wrapped, because those of this caller would take more than 10000 bytes/);
        return true;
      }
    };

    it('counts to its owner, who cannot fill the disk with them; those of others do not', async () => {
      const { wrapping } = await limited();
      const refusals = [await isRefused(wrapping), await isRefused(wrapping), await isRefused(wrapping, 'p')];
      expect(refusals).to.deep.equal([false, true, false]);
    });

    it('counts however short it is, with the records of its token', async () => {
      const { wrapping } = await limited();
      const short = { ...answer, body: '{}' };
      for (let n = 0; n < 4; n += 1) await wrapping.wrap(short);
      expect(String(await wrapping.wrap(short).catch((error) => error))).to.match(/would take more than 10000 bytes/);
    });

    it('counts on the next active node too, as soon as that has wrapped a response', async () => {
      const { wrapping, store, tokens, registry, clock } = await limited();
      const other = new Wrapping({
        ...{ store, tokens, dates: registry.dates, clock: clockOf(() => clock.now), ttlSMax: hour, ownerBytesMax: 10_000 },
      });
      const text = 'quotes "," and ,"body":" in a text';
      const first = await wrapping.wrap({ ...long, path: text });
      expect(await isRefused(wrapping)).to.equal(true);
      await other.wrap({ ...answer, owner: 'p' });
      await other.counted;
      expect([await isRefused(other), await isRefused(other, 'q')]).to.deep.equal([true, false]);
      await other.unwrap(first.token);
      expect(await isRefused(other), 'fetched there').to.equal(false);

      // The first node becomes active again, and learns what the other one has stored meanwhile.
      await wrapping.wrap({ ...answer, owner: 'r' });
      await wrapping.counted;
      expect(await isRefused(wrapping)).to.equal(true);
      for (const one of [wrapping, other]) one.close();
    });

    it('no longer counts if it is fetched while the next active node reads the records', async () => {
      const { wrapping, store, tokens, registry, clock } = await limited();
      const first = await wrapping.wrap(long);
      const other = new Wrapping({
        ...{ store, tokens, dates: registry.dates, clock: clockOf(() => clock.now), ttlSMax: hour, ownerBytesMax: 10_000 },
      });
      const { range } = store;
      store.range = async (query) => {
        const page = await range.call(store, query);
        store.range = range;
        await other.unwrap(first.token);
        return page;
      };
      await other.wrap({ ...answer, owner: 'p' });
      await other.counted;
      expect(await isRefused(other)).to.equal(false);
      for (const one of [wrapping, other]) one.close();
    });

    it('counts until it is fetched, revoked or expires, also under another token', async () => {
      const { wrapping, registry, clock } = await limited();
      const first = await wrapping.wrap(long);
      await wrapping.unwrap(first.token);
      const second = await wrapping.wrap(long);
      const moved = await wrapping.rewrap(second.token);
      expect(await isRefused(wrapping)).to.equal(true);
      await registry.revoke({ accessor: moved?.accessor ?? '' });
      expect([await isRefused(wrapping), await isRefused(wrapping)]).to.deep.equal([false, true]);
      clock.now += 60_000;
      expect(await isRefused(wrapping)).to.equal(false);
      wrapping.close();
    });

    it('counts if it may be stored, and not if it certainly is not', async () => {
      const { wrapping, store } = await limited();
      const { commit } = store;
      for (const [code, isCounted] of [
        ['disk_low', false],
        ['outcome_unknown', true],
      ] as const) {
        store.commit = () => Promise.reject(new StoreError(code, 'no'));
        expect(await wrapping.wrap({ ...long, owner: code }).catch(({ message }: Error) => message)).to.equal('no');
        store.commit = commit;
        expect(await isRefused(wrapping, code)).to.equal(isCounted);
      }
    });
  });
});
