import { expect } from 'chai';
import { isBelowMount, MountRoutes } from '../../src/operation/mount-routes.ts';
import { paramNames } from '../../src/operation/operation.ts';
import { allRoutes } from '../../src/routes.ts';
import { TestMetrics } from '../test-metrics.ts';

const below = allRoutes(new TestMetrics()).filter(isBelowMount);
const routes = new MountRoutes(below);
const find = (target: string, mount = { path: 'mnt', depth: 1 }) => routes.find(target.split('/'), mount);

describe('the parameters of all routes', () => {
  it('are exactly the names that operations may use', () => {
    const used = allRoutes(new TestMetrics()).flatMap(({ path }) => [...path.matchAll(/[:*](\w+)/g)].map(([, name]) => name));
    expect([...new Set(used)].toSorted()).to.deep.equal(paramNames.toSorted());
  });
});

describe('routes below a mount', () => {
  for (const route of below)
    it(`lead to ${route.path}`, () => {
      const valued = route.path.replace(':mount', 'mnt').replaceAll(':version', '1').replaceAll(/:\w+/g, 'x');
      expect(find(valued)?.route).to.equal(route);
    });

  for (const [target, path, params] of [
    ['mnt/keys', 'keys', {}],
    ['mnt/keys/k', 'keys/:name', { name: 'k' }],
    ['mnt/keys/rotate', 'keys/:name', { name: 'rotate' }],
    ['mnt/keys/rotate/rotate', 'keys/:name/rotate', { name: 'rotate' }],
    ['mnt/export/encryption-key/k/2', 'export/:key_type/:name/:version', { key_type: 'encryption-key', name: 'k', version: '2' }],
    ['mnt/config/keys', 'config/keys', {}],
  ] as const)
    it(`take ${target} for ${path}`, () => {
      const found = find(target);
      expect(found?.route.path).to.equal(`:mount/${path}`);
      expect(found?.params).to.deep.equal({ mount: 'mnt', ...params });
    });

  it('begin after all segments of the mount path', () => {
    expect(find('a/keys/keys/k/config', { path: 'a/keys', depth: 2 })?.params).to.deep.equal({ mount: 'a/keys', name: 'k' });
    expect(find('a/keys', { path: 'a/keys', depth: 2 })).to.equal(undefined);
  });

  for (const target of ['mnt', 'mnt/Keys', 'mnt/keys/k/other', 'mnt/keys/k/rotate/x', 'mnt/keys/a:b', 'mnt/config', 'mnt/:name'])
    it(`do not lead to ${target}`, () => {
      expect(find(target)).to.equal(undefined);
    });
});
