import { expect } from 'chai';
import { SharedRendering } from '../src/metrics/shared-rendering.ts';

describe('SharedRendering', () => {
  it('starts one rendering for all requests that arrive before it starts', async () => {
    let state = 0;
    let renderings = 0;
    const shared = new SharedRendering(async () => {
      renderings += 1;
      await undefined;
      return state;
    });
    const first = Array.from({ length: 50 }, () => shared.get());
    expect(await Promise.all(first)).to.deep.equal(first.map(() => 0));
    expect(renderings).to.equal(1);
    state = 1;
    const later = Array.from({ length: 50 }, () => shared.get());
    expect(await Promise.all(later)).to.deep.equal(later.map(() => 1));
    expect(renderings).to.equal(2);
  });

  it('runs one rendering at a time, and serves requests during it with the next one', async () => {
    const ends: (() => void)[] = [];
    const shared = new SharedRendering(() => new Promise<number>((resolve) => ends.push(() => resolve(ends.length))));
    const first = shared.get();
    await undefined;
    const second = shared.get();
    const third = shared.get();
    expect(ends).to.have.length(1);
    ends[0]?.();
    expect(await first).to.equal(1);
    while (ends.length < 2) await new Promise((resolve) => setImmediate(resolve));
    ends[1]?.();
    expect(await Promise.all([second, third])).to.deep.equal([2, 2]);
  });

  it('renders again for the next request after a failure', async () => {
    let fails = true;
    const shared = new SharedRendering(async () => {
      if (fails) throw new Error('broken');
      return 'whole';
    });
    expect(await shared.get().catch(({ message }: Error) => message)).to.equal('broken');
    fails = false;
    expect(await shared.get()).to.equal('whole');
  });
});
