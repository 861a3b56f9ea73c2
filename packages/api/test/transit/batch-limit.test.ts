import { jsonValuesMax } from '@transitd/http';
import { batchItemsMax } from '@transitd/transit-engine';
import { expect } from 'chai';

describe('the limit on JSON values', () => {
  it('allows eight members for each item of the longest batch', () => {
    expect(jsonValuesMax).to.be.at.least(8 * batchItemsMax);
  });
});
