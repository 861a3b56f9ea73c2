import { expect } from 'chai';
import fc from 'fast-check';
import { below, isOfOneNode, PathError, urlOf } from '../src/paths.ts';

const address = 'https://n1.example:8200';

describe('paths', () => {
  for (const { path, url } of [
    { path: 'transit/keys/a', url: '/v1/transit/keys/a' },
    { path: '/transit/keys/a', url: '/v1/transit/keys/a' },
    { path: 'sys/policies/acl/', url: '/v1/sys/policies/acl/' },
    { path: 'transit/keys/a b', url: '/v1/transit/keys/a%20b' },
    { path: ['transit', 'keys', 'a/rotate'], url: '/v1/transit/keys/a%2Frotate' },
    { path: 'sys/a?b#c', url: '/v1/sys/a%3Fb%23c' },
    { path: below('team/a/', 'keys', 'k'), url: '/v1/team/a/keys/k' },
  ])
    it(`${JSON.stringify(path)} is ${url}`, () => expect(urlOf(address, path).href).to.equal(`${address}${url}`));

  for (const path of [
    '',
    '/',
    'a//b',
    'a/../b',
    '..',
    ['transit', 'keys', '..'],
    ['transit', 'keys', '.'],
    ['transit', 'keys', ''],
  ])
    it(`${JSON.stringify(path)} is refused: the URL would name another path`, () => {
      expect(() => urlOf(address, path)).to.throw(PathError, 'a path must not have empty segments');
    });

  for (const [of, url] of [
    ['https://n1.example:8200/', 'https://n1.example:8200/v1/sys/health'],
    ['https://proxy.example/keys', 'https://proxy.example/keys/v1/sys/health'],
    ['https://proxy.example/a/b%20c/', 'https://proxy.example/a/b%20c/v1/sys/health'],
    ['https://n1.example:8200?x=1#y', 'https://n1.example:8200/v1/sys/health'],
  ] as const)
    it(`are below the path of ${of}`, () => expect(urlOf(of, 'sys/health').href).to.equal(url));

  it('encode names so that each stays one segment', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), (name) => {
        fc.pre(name !== '.' && name !== '..');
        const { pathname, search, hash, origin } = urlOf(address, ['transit', 'keys', name]);
        expect([origin, search, hash]).to.deep.equal([address, '', '']);
        expect(pathname.split('/').slice(0, 4)).to.deep.equal(['', 'v1', 'transit', 'keys']);
        expect(decodeURIComponent(pathname.split('/').slice(4).join('/'))).to.equal(name);
      }),
    );
  });

  it('know which responses are about one node', () => {
    for (const path of ['sys/seal', '/sys/unseal', 'sys/init/', 'sys/storage/raft/join', ['sys', 'seal-status']])
      expect(isOfOneNode(path), String(path)).to.equal(true);
    for (const path of [
      'sys/step-down',
      'sys/seal-wrap',
      'sys/storage/raft/remove-peer',
      'transit/keys/sys/seal',
      'sys/mounts/seal',
    ])
      expect(isOfOneNode(path), path).to.equal(false);
  });
});
