import { expect } from 'chai';
import { commonVersion, type WireVersions, wireVersions } from '../../src/wire/version.ts';

const versions = (oldest: number, newest: number): WireVersions => ({ oldest, newest });

describe('commonVersion', () => {
  for (const [name, one, other, expected] of [
    ['the newest of two alike', versions(2, 3), versions(2, 3), 3],
    ['the older one’s newest, in a rolling upgrade', versions(2, 3), versions(1, 2), 2],
    ['none two releases apart', versions(3, 4), versions(1, 2), undefined],
    ['the only one there is', versions(1, 1), versions(1, 2), 1],
  ] as const) {
    it(`is ${name}`, () => {
      expect(commonVersion(one, other)).to.equal(expected);
      expect(commonVersion(other, one)).to.equal(expected);
    });
  }

  it('of this program with itself is the version that it writes', () => {
    expect(commonVersion(wireVersions, wireVersions)).to.equal(wireVersions.newest);
    expect(wireVersions.newest - wireVersions.oldest, 'one release back at most').to.be.within(0, 1);
  });
});
