import { expect } from 'chai';
import { keysBelow } from '../../src/copy/keys.ts';

describe('keys in etcd', () => {
  it('are all in one range, which no other prefix shares', () => {
    const keys = keysBelow('/transit/prod/');
    const all = [
      keys.record(0, 'a/b'),
      keys.record(12, 'a/b'),
      keys.space,
      keys.level,
      keys.marker,
      keys.active,
      keys.heartbeat,
      keys.reserved,
      keys.staged,
      keys.cluster,
      keys.chunk('x', 3),
    ];
    for (const key of all) expect(key >= keys.start && key < keys.end, key).to.equal(true);
    for (const other of ['transit/prod2', 'transit/pro', 'transit/prod-2', 'transit/staging'])
      for (const key of [keysBelow(other).record(0, 'a'), keysBelow(other).marker])
        expect(key >= keys.start && key < keys.end, key).to.equal(false);
  });

  it('are recognized', () => {
    const keys = keysBelow('p');
    for (const space of [0, 1, 12])
      expect(keys.kindOf(keys.record(space, 'a/b'))).to.deep.equal({ kind: 'record', space, path: 'a/b' });
    for (const other of ['p/r0/a', 'p/r01/a', 'p/rx/a', 'other/r/a', 'p/r']) expect(keys.kindOf(other)).to.equal(undefined);
    expect(keys.kindOf(keys.chunk('x', 0))).to.deep.equal({ kind: 'chunk' });
    expect(keys.kindOf(keys.marker)).to.deep.equal({ kind: 'marker' });
    expect(keys.kindOf('p/later/version')).to.equal(undefined);
  });

  for (const prefix of ['', '/', 'a//b', 'a b', 'a/\0'])
    it(`are refused below ${JSON.stringify(prefix)}`, () => {
      expect(() => keysBelow(prefix)).to.throw(TypeError);
    });
});
