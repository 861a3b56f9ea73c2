import { expect } from 'chai';
import { RequestError } from '../src/reply/request-error.ts';
import { namesNamespace, tokenOf, wrapTtlOf } from '../src/token-header.ts';

describe('the headers of a request', () => {
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

  it('counts a token once that a header repeats, and refuses different ones', () => {
    for (const name of ['x-service-token', 'x-vault-token']) {
      expect(tokenOf({ [name]: 'a, a, a' })).to.equal('a');
      for (const joined of ['a, b', 'a, ', ', a'])
        expect(() => tokenOf({ [name]: joined })).to.throw(RequestError, /repeated with different tokens/);
    }
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
    it(`treats the namespace ${JSON.stringify(value)} as ${expected ? 'another namespace' : 'the root'}`, () => {
      expect(namesNamespace({ 'x-service-namespace': value })).to.equal(expected);
      expect(namesNamespace({ 'x-service-namespace': '', 'x-vault-namespace': value })).to.equal(expected);
    });

  for (const [ttl, expected] of [
    ['', 0],
    ['0', 0],
    ['00', 0],
    ['0s', 0],
    ['0m0s', 0],
    ['0h0m0s', 0],
    ['0ms', 0],
    ['60', 60],
    ['1m', 60],
    ['0m1s', 1],
    ['1h1m1s', 3661],
    ['0.5s', 'refused'],
    ['-1', 'refused'],
    ['soon', 'refused'],
    ['1e9', 'refused'],
    ['60, 60', 'refused'],
  ] as const)
    it(`reads the wrap TTL ${JSON.stringify(ttl)} as ${expected}`, () => {
      for (const headers of [{ 'x-service-wrap-ttl': ttl }, { 'x-service-wrap-ttl': '', 'x-vault-wrap-ttl': ttl }])
        if (expected === 'refused') expect(() => wrapTtlOf(headers)).to.throw(RequestError, /the TTL is not a duration/);
        else expect(wrapTtlOf(headers)).to.equal(expected);
    });

  it('parses headers that consist of slashes and zeros in linear time', () => {
    const long = 16_000;
    expect(namesNamespace({ 'x-service-namespace': `${'/'.repeat(long)}x` })).to.equal(true);
    expect(() => wrapTtlOf({ 'x-service-wrap-ttl': `${'0'.repeat(long)}x` })).to.throw(RequestError);
  });
});
