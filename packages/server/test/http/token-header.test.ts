import { expect } from 'chai';
import { namesNamespace, tokenOf, wantsWrapping } from '../../src/http/token-header.ts';

describe('the headers that say who asks for what', () => {
  for (const { headers, token, because } of [
    {
      headers: { 'x-service-token': 'a', 'x-vault-token': 'b', authorization: 'Bearer c' },
      token: 'a',
      because: 'ours is first',
    },
    { headers: { 'x-service-token': '', 'x-vault-token': 'b' }, token: 'b', because: 'an empty one hides no other' },
    {
      headers: { 'x-service-token': '', 'x-vault-token': '', authorization: 'bearer  c' },
      token: 'c',
      because: 'the last resort',
    },
    { headers: { authorization: 'Basic c' }, token: undefined, because: 'another scheme' },
    { headers: {}, token: undefined, because: 'nothing is there' },
  ])
    it(`finds the token ${token} in ${JSON.stringify(headers)}: ${because}`, () => {
      expect(tokenOf(headers)).to.equal(token);
    });

  for (const [value, expected] of [
    ['', false],
    ['/', false],
    ['root', false],
    ['/root//', false],
    ['a', true],
    ['root/a', true],
    ['roots', true],
  ] as const)
    it(`takes the namespace ${JSON.stringify(value)} for ${expected ? 'another one' : 'the root'}`, () => {
      expect(namesNamespace({ 'x-service-namespace': value })).to.equal(expected);
      expect(namesNamespace({ 'x-service-namespace': '', 'x-vault-namespace': value })).to.equal(expected);
    });

  for (const [ttl, expected] of [
    ['', false],
    ['0', false],
    ['00', false],
    ['0s', false],
    ['0m0s', false],
    ['0h0m0s', false],
    ['0ms', false],
    ['60', true],
    ['1m', true],
    ['0m1s', true],
    ['0.5s', true],
    ['soon', true],
  ] as const)
    it(`${expected ? 'wants an answer wrapped' : 'wants no wrapping'} with the time ${JSON.stringify(ttl)}`, () => {
      expect(wantsWrapping({ 'x-service-wrap-ttl': ttl })).to.equal(expected);
      expect(wantsWrapping({ 'x-service-wrap-ttl': '', 'x-vault-wrap-ttl': ttl })).to.equal(expected);
    });

  it('reads headers of nothing but slashes and zeros in linear time', () => {
    const long = 16_000;
    expect(namesNamespace({ 'x-service-namespace': `${'/'.repeat(long)}x` })).to.equal(true);
    expect(wantsWrapping({ 'x-service-wrap-ttl': `${'0'.repeat(long)}x` })).to.equal(true);
  });
});
