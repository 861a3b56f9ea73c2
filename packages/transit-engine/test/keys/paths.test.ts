import { expect } from 'chai';
import fc from 'fast-check';
import { isKeyName, pathsOf } from '../../src/keys/paths.ts';

describe('isKeyName', () => {
  for (const name of ['a', '_', '1', 'import', 'a-b', 'a.b', 'A_b.c-d_', 'a..b', 'x'.repeat(512)]) {
    it(`accepts ${name.slice(0, 20)}`, () => expect(isKeyName(name)).to.equal(true));
  }
  for (const name of ['', '-a', 'a-', '.a', 'a.', 'a b', 'a/b', 'a:b', 'a$b', 'ü', 'a\n', '..', '.', 'x'.repeat(513)]) {
    it(`refuses ${JSON.stringify(name.slice(0, 20))}`, () => expect(isKeyName(name)).to.equal(false));
  }
});

describe('paths of version records', () => {
  const paths = pathsOf('m1');
  const keyId = 'ab12';

  it('sort by number, and before the end mark of the key', () => {
    const version = fc.integer({ min: 1, max: 2 ** 31 });
    fc.assert(
      fc.property(version, version, (a, b) => {
        const [pathA, pathB] = [paths.version({ keyId, version: a }), paths.version({ keyId, version: b })];
        expect(pathA < pathB).to.equal(a < b);
        expect(pathA < paths.afterVersionsOf(keyId)).to.equal(true);
        expect(paths.parseVersion(pathA)).to.deep.equal({ keyId, version: a });
      }),
    );
  });
});
