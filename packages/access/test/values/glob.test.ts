import { expect } from 'chai';
import { globMatches } from '../../src/values/glob.ts';

describe('a glob', () => {
  for (const [pattern, text, matches] of [
    ['*', '', true],
    ['a*', 'ab', true],
    ['a*', 'ba', false],
    ['*a', 'ba', true],
    ['*a', 'ab', false],
    ['*a*', 'bab', true],
    ['a', 'a', true],
    ['a', 'ab', false],
    ['a*b', 'acb', false],
    ['a*b', 'a*b', true],
  ] as const)
    it(`${pattern} ${matches ? 'matches' : 'does not match'} ${JSON.stringify(text)}`, () => {
      expect(globMatches(pattern, text)).to.equal(matches);
    });
});
