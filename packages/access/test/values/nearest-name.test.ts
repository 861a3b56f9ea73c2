import { expect } from 'chai';
import { didYouMean, nearestName } from '../../src/values/nearest-name.ts';

const names = ['capabilities', 'comment', 'node_id', 'data_dir', 'log'];

describe('the nearest name', () => {
  for (const [written, meant] of [
    ['capabilites', 'capabilities'],
    ['Capabilities', 'capabilities'],
    ['node_di', 'node_id'],
    ['nodeid', 'node_id'],
    ['lgo', 'log'],
    ['datadir', 'data_dir'],
    ['color', undefined],
    ['xyz', undefined],
    ['', undefined],
    ['c'.repeat(100_000), undefined],
  ] as const) {
    it(`of ${written.slice(0, 20)} is ${meant}`, () => expect(nearestName(written, names)).to.equal(meant));
  }

  it('counts a swap of neighbors as one edit', () => {
    expect(nearestName('ab', ['ba'])).to.equal('ba');
    expect(nearestName('ab', ['cd'])).to.equal(undefined);
  });

  it('is suggested as a question, or not at all', () => {
    expect(didYouMean('capabilites', names)).to.equal('; did you mean "capabilities"?');
    expect(didYouMean('color', names)).to.equal('');
  });
});
