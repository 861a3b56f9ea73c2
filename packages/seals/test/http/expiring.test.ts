import { expect } from 'chai';
import { Expiring } from '../../src/http/expiring.ts';

describe('a credential that expires', () => {
  it('is requested once for concurrent callers, and again after a failure', async () => {
    let requests = 0;
    let failing = true;
    const kept = new Expiring(
      async () => {
        requests += 1;
        if (failing) throw new Error('away');
        return { value: `token ${requests}`, endsAtMs: undefined };
      },
      () => 0,
    );
    const results = await Promise.allSettled([kept.get(), kept.get()]);
    expect(results.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    expect(requests).to.equal(1);
    failing = false;
    expect(await Promise.all([kept.get(), kept.get(), kept.get()])).to.deep.equal(['token 2', 'token 2', 'token 2']);
    kept.forget();
    expect(await kept.get()).to.equal('token 3');
  });

  describe('with an end', () => {
    let nowMs = 0;
    let requests = 0;
    let failing = false;
    const lasting = (lifetimeMs: number): Expiring<string> => {
      [nowMs, requests, failing] = [1_000_000, 0, false];
      return new Expiring(
        async () => {
          requests += 1;
          if (failing) throw new Error('away');
          return { value: `token ${requests}`, endsAtMs: nowMs + lifetimeMs };
        },
        () => nowMs,
      );
    };
    const outcome = (kept: Expiring<string>): Promise<string> => kept.get().catch(({ message }: Error) => message);

    for (const [lifetimeMs, renewedAfterMs] of [
      [3_600_000, 3_300_000],
      [200_000, 100_000],
    ] as const)
      it(`is replaced ${renewedAfterMs} ms after it came, of ${lifetimeMs} ms`, async () => {
        const kept = lasting(lifetimeMs);
        await kept.get();
        nowMs += renewedAfterMs - 1;
        expect(await kept.get()).to.equal('token 1');
        nowMs += 1;
        expect(await kept.get()).to.equal('token 2');
      });

    it('is used until its end while no other can be had, unless it was refused', async () => {
      const kept = lasting(3_600_000);
      await kept.get();
      failing = true;
      nowMs += 3_599_999;
      expect(await Promise.all([outcome(kept), outcome(kept)])).to.deep.equal(['token 1', 'token 1']);
      const attempt = outcome(kept);
      kept.forget();
      expect([await attempt, await outcome(kept)]).to.deep.equal(['away', 'away']);
    });

    it('is not used after its end', async () => {
      const kept = lasting(3_600_000);
      await kept.get();
      failing = true;
      nowMs += 3_600_000;
      expect(await outcome(kept)).to.equal('away');
    });
  });
});
