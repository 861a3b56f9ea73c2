import { expect } from 'chai';
import { globMatches, starsMatch } from '../../src/values/glob.ts';

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

describe('a glob with stars anywhere', () => {
  for (const [pattern, text, matches] of [
    ['', '', true],
    ['', 'a', false],
    ['*', '', true],
    ['a', 'a', true],
    ['a', 'ab', false],
    ['a*', 'ab', true],
    ['*a', 'ab', false],
    ['a*b', 'acb', true],
    ['a*b', 'ab', true],
    ['a*a', 'a', false],
    ['ab*ba', 'aba', false],
    ['a*b*c', 'a-b-c', true],
    ['a*b*c', 'a-c-b', false],
    ['a**b', 'ab', true],
    ['*b*', 'abc', true],
    ['*bb*b', 'abb', false],
    ['repo:org/*:environment:prod', 'repo:org/app:environment:prod', true],
    ['repo:org/*:environment:prod', 'repo:other/app:environment:prod', false],
  ] as const)
    it(`${JSON.stringify(pattern)} ${matches ? 'matches' : 'does not match'} ${JSON.stringify(text)}`, () => {
      expect(starsMatch(pattern, text)).to.equal(matches);
    });
});
