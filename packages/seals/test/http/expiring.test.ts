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
});
