import v8 from 'node:v8';
import { expect } from 'chai';
import { HeapGrowth } from '../src/gateways/heap-growth.ts';

describe('the growth of heaps', () => {
  it('is limited only while no thread loads code, since V8 refuses code that was compiled under other flags', () => {
    const loading = v8.cachedDataVersionTag();
    const growth = new HeapGrowth();
    growth.threadLoaded();
    const limited = v8.cachedDataVersionTag();
    expect(limited).not.to.equal(loading);
    growth.threadLoads();
    growth.threadLoads();
    growth.threadLoaded();
    expect(v8.cachedDataVersionTag()).to.equal(loading);
    growth.threadLoaded();
    expect(v8.cachedDataVersionTag()).to.equal(limited);
    growth.threadLoads();
    expect(v8.cachedDataVersionTag()).to.equal(loading);
  });
});
