import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import fc from 'fast-check';
import { clockOf } from '../../../process/test/test-clock.ts';
import { RateLimited } from '../../src/index.ts';
import { quotaMatches } from '../../src/quota/quota.ts';
import { Quotas } from '../../src/quota/quotas.ts';
import { admission, type Bucket } from '../../src/quota/token-bucket.ts';
import { refusal } from '../fixtures.ts';

async function withQuotas(store = memoryStore(), callersMax?: number) {
  const clock = { now: 1_000_000 };
  const quotas = new Quotas({ store, clock: clockOf(() => clock.now), ...(callersMax !== undefined && { callersMax }) });
  await quotas.open();
  const asks = (path: string, times: number, address = '192.0.2.1'): number => {
    let admitted = 0;
    for (let time = 0; time < times; time += 1) {
      try {
        quotas.admit(path, address);
        admitted += 1;
      } catch (error) {
        if (!(error instanceof RateLimited)) throw error;
      }
    }
    return admitted;
  };
  return { store, clock, quotas, asks };
}

describe('a token bucket', () => {
  it('never admits more than its burst and its refill', () => {
    const gaps = fc.array(fc.nat(5000), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 10 }), (waits, rate, intervalS) => {
        let [bucket, now, admitted]: [Bucket | undefined, number, number] = [undefined, 0, 0];
        for (const wait of waits) {
          now += wait;
          const next = admission(bucket, { rate, intervalS, blockIntervalS: 0 }, now);
          bucket = next.bucket;
          if (next.admitted) admitted += 1;
          const from = waits[0] ?? 0;
          expect(admitted).to.be.at.most(Math.ceil(rate + (rate * (now - from)) / (intervalS * 1000) + 1e-9));
        }
      }),
    );
  });

  it('returns the wait after which one more request is admitted', () => {
    const rate = { rate: 2, intervalS: 60, blockIntervalS: 0 };
    let bucket = admission(undefined, rate, 0).bucket;
    bucket = admission(bucket, rate, 0).bucket;
    const refused = admission(bucket, rate, 10_000);
    expect([refused.admitted, refused.waitMs]).to.deep.equal([false, 20_000]);
    expect(admission(refused.bucket, rate, 29_999).admitted).to.equal(false);
    expect(admission(refused.bucket, rate, 30_000).admitted).to.equal(true);
  });

  it('refills nothing when the clock is set back', () => {
    const rate = { rate: 1, intervalS: 1, blockIntervalS: 0 };
    const { bucket } = admission(undefined, rate, 1_000_000);
    expect(admission(bucket, rate, 0).admitted).to.equal(false);
  });
});

describe('quotas', () => {
  it('count each caller separately, an IPv6 /64 as one', async () => {
    const { quotas, asks, clock } = await withQuotas();
    await quotas.write('q', { path: 'transit/', rate: 2, intervalS: 60 });
    expect(asks('transit/keys', 5)).to.equal(2);
    expect(asks('transit/keys', 5, '192.0.2.2')).to.equal(2);
    expect(asks('transit/keys', 5, '2001:db8::1') + asks('transit/keys', 5, '2001:db8::2')).to.equal(2);
    expect(asks('other/keys', 5)).to.equal(5);
    clock.now += 60_000;
    expect(asks('transit/keys', 5)).to.equal(2);
  });

  it('return the remaining requests and refuse with the time to wait', async () => {
    const { quotas, asks } = await withQuotas();
    await quotas.write('q', { rate: 2, intervalS: 60 });
    expect(quotas.admit('any/path', '192.0.2.1')).to.deep.equal({ limit: 2, remaining: 1, resetS: 30 });
    asks('any/path', 1);
    try {
      quotas.admit('any/path', '192.0.2.1');
      expect.fail('admitted');
    } catch (error) {
      expect(error).to.be.instanceOf(RateLimited).and.to.deep.include({ limit: 2, resetS: 30 });
      expect(String(error)).to.include('request path "any/path": rate limit quota exceeded');
    }
  });

  it('are selected by the longest path alone', async () => {
    const { quotas, asks } = await withQuotas();
    await quotas.write('all', { rate: 1, intervalS: 60 });
    await quotas.write('mount', { path: 'transit/', rate: 3, intervalS: 60 });
    await quotas.write('one', { path: 'transit/encrypt/k', rate: 5, intervalS: 60 });
    expect([asks('transit/encrypt/k', 9), asks('transit/keys', 9), asks('sys/mounts', 9)]).to.deep.equal([5, 3, 1]);
  });

  it('are refused if another one counts the same requests, also when both are written at once', async () => {
    const { quotas, asks } = await withQuotas();
    await quotas.write('first', { path: 'transit/', rate: 1, intervalS: 60 });
    for (const path of ['transit/', 'transit/*'])
      expect(String(await quotas.write('aa', { path, rate: 99 }).catch((error) => error))).to.match(/"first" limits the same/);
    await quotas.write('first', { rate: 2 });
    await quotas.write('by-role', { path: 'transit/', role: 'Web', rate: 99 });
    await quotas.write('one', { path: 'transit/encrypt/k', rate: 1, intervalS: 60 });
    await quotas.write('some', { path: 'transit/encrypt/k*', rate: 3, intervalS: 60 });
    expect([asks('transit/encrypt/k', 9), asks('transit/encrypt/key', 9), asks('transit/keys', 9)]).to.deep.equal([1, 3, 2]);
    const moved = await quotas.write('one', { path: 'transit/' }).catch((error) => error);
    expect(String(moved), 'a change of the path').to.include('"first" limits the same');
    const both = await Promise.allSettled(['x', 'y'].map((name) => quotas.write(name, { path: 'sys/', rate: 1 })));
    expect(both.map(({ status }) => status).sort()).to.deep.equal(['fulfilled', 'rejected']);
  });

  it('block a caller for the block interval, which further requests do not extend', async () => {
    const { quotas, asks, clock } = await withQuotas();
    await quotas.write('q', { rate: 1, intervalS: 1, blockIntervalS: 60 });
    expect(asks('p', 2)).to.equal(1);
    clock.now += 59_999;
    expect(asks('p', 1)).to.equal(0);
    clock.now += 1;
    expect(asks('p', 1)).to.equal(1);
  });

  it('for a role count only its logins', async () => {
    const { quotas, asks } = await withQuotas();
    await quotas.write('q', { path: 'auth/m/', role: 'web', rate: 1, intervalS: 60 });
    expect(asks('auth/m/login', 5)).to.equal(5);
    quotas.admitLogin('auth/m/login', 'web', '192.0.2.1');
    quotas.admitLogin('auth/m/login', 'other', '192.0.2.1');
    expect(() => quotas.admitLogin('auth/m/login', 'web', '192.0.2.1')).to.throw(RateLimited);
  });

  it('are enforced once the write returns, on another node once it has read them, and end with their deletion', async () => {
    const { store, quotas, asks } = await withQuotas();
    const other = await withQuotas(store);
    await quotas.write('q', { rate: 1, intervalS: 60 });
    expect(asks('p', 3)).to.equal(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(other.asks('p', 3)).to.equal(1);
    await quotas.configure({ exemptPaths: ['p'] });
    expect(asks('p', 3)).to.equal(3);
    await quotas.configure({ exemptPaths: [] });
    expect(asks('p', 3), 'the count is kept').to.equal(0);
    await quotas.write('q', { rate: 2 });
    expect(asks('p', 3), 'another rate starts with a full bucket').to.equal(2);
    await quotas.delete('q');
    expect(asks('p', 3)).to.equal(3);
    expect(await quotas.list()).to.deep.equal([]);
  });

  it('that group by token count a token across all addresses, and requests without a token by address', async () => {
    const { quotas, asks } = await withQuotas();
    await quotas.write('q', { rate: 1, intervalS: 60, groupBy: 'token' });
    expect(asks('p', 5), 'not counted before authentication').to.equal(5);
    quotas.admitToken('p', 'one', '192.0.2.1');
    quotas.admitToken('p', 'two', '192.0.2.1');
    quotas.admitToken('p', undefined, '192.0.2.1');
    for (const id of ['one', 'two', undefined])
      expect(() => quotas.admitToken('p', id, id === undefined ? '192.0.2.1' : '192.0.2.9')).to.throw(RateLimited);
    await quotas.write('q', { groupBy: 'ip' });
    quotas.admitToken('p', 'one', '192.0.2.1');
    expect(asks('p', 5)).to.equal(1);
  });

  it('are read when a node starts to serve', async () => {
    const { store, quotas } = await withQuotas();
    await quotas.write('q', { rate: 1, intervalS: 60 });
    expect((await withQuotas(store)).asks('p', 3)).to.equal(1);
  });

  it('keep a bounded number of callers in memory', async () => {
    const { quotas, asks } = await withQuotas(memoryStore(), 100);
    await quotas.write('q', { rate: 1, intervalS: 3600 });
    expect(asks('p', 2)).to.equal(1);
    for (let n = 0; n < 99; n += 1) quotas.admit('p', `10.0.0.${n}`);
    expect(asks('p', 1), 'still counted').to.equal(0);
    for (let n = 0; n < 100; n += 1) quotas.admit('p', `11.0.0.${n}`);
    expect(asks('p', 1), 'dropped').to.equal(1);
  });

  for (const [change, text] of [
    [{ rate: 0 }, "'rate' must be greater than 0"],
    [{ rate: -1 }, "'rate' must be greater than 0"],
    [{ rate: Number.POSITIVE_INFINITY }, "'rate' must be greater than 0"],
    [{}, "'rate' must be greater than 0"],
    [{ rate: 1, intervalS: 0 }, "'interval' must be between"],
    [{ rate: 1, blockIntervalS: -1 }, "'block_interval' is at most"],
    [{ rate: 1, path: 'x'.repeat(2000) }, 'a path must have at most'],
  ] as const)
    it(`are refused with ${JSON.stringify(change).slice(0, 40)}`, async () => {
      const { quotas } = await withQuotas();
      expect(await refusal(quotas.write('q', change))).to.match(new RegExp(`^invalid_request: .*${text}`));
    });

  for (const [pattern, path, expected] of [
    ['', 'a', true],
    ['a/', 'a/b', true],
    ['a/', 'a', true],
    ['a/', 'ab', false],
    ['a', 'a', true],
    ['a', 'a/b', false],
    ['a*', 'ab/c', true],
    ['a/b*', 'a/c', false],
  ] as const)
    it(`with the path ${JSON.stringify(pattern)} ${expected ? 'apply' : 'do not apply'} to ${path}`, () => {
      expect(quotaMatches(pattern, path)).to.equal(expected);
    });

  it('may count a request from the moment of a change until the changed quotas are read', async () => {
    const { store, quotas } = await withQuotas();
    const other = new Quotas({ store, clock: clockOf(() => 0) });
    await other.open();
    expect(other.mayCount('transit/hash')).to.equal(false);
    const written = quotas.write('q', { path: 'transit/hash', rate: 1, intervalS: 60 });
    await written;
    expect(other.mayCount('transit/hash')).to.equal(true);
    await other.open();
    expect([other.mayCount('transit/hash'), other.mayCount('transit/keys')]).to.deep.equal([true, false]);
    await quotas.delete('q');
    await other.open();
    expect(other.mayCount('transit/hash')).to.equal(false);
  });
});
