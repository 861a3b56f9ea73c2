import { expect } from 'chai';
import fc from 'fast-check';
import { isBelowMount } from '../../src/operation/mount-routes.ts';
import type { Route } from '../../src/operation/operation.ts';
import { PlainRoutes } from '../../src/operation/plain-routes.ts';
import { allRoutes } from '../../src/routes.ts';
import { TestMetrics } from '../test-metrics.ts';

const plain = allRoutes(new TestMetrics()).filter((route) => !isBelowMount(route));
const routes = new PlainRoutes(plain);
const pathsOf = (target: string): string[] => [...routes.matches(target.split('/'))].map(({ route }) => route.path);

/** Compares every route that accepts any parameters with the path, as a regular expression. */
function modelOf(target: string): string[] {
  const matches = ({ path }: Route): boolean => {
    const pattern = path.replaceAll(/[.-]/g, '\\$&').replaceAll(/:\w+/g, '[^/]+').replaceAll(/\*\w+/g, '.+');
    return new RegExp(`^${pattern}$`).test(target);
  };
  return plain.filter((route) => matches(route) && route.accepts === undefined).map(({ path }) => path);
}

describe('routes outside mounts', () => {
  for (const route of plain)
    it(`lead to ${route.path}`, () => {
      const target = route.path
        .replaceAll(/[*:]method/g, 'userpass')
        .replaceAll(/:\w+/g, 'x')
        .replaceAll(/\*\w+/g, 'a/b');
      expect(pathsOf(target)).to.include(route.path);
    });

  it('are found in the order of the route table, as if every route were compared', () => {
    const words = [...new Set(plain.flatMap(({ path }) => path.split('/').filter((part) => !/^[:*]/.test(part))))];
    const target = fc.array(fc.oneof(fc.constantFrom(...words), fc.constantFrom('x', 'Sys', ':name')), {
      minLength: 1,
      maxLength: 6,
    });
    const ofTable = fc
      .constantFrom(...plain)
      .chain(({ path }) =>
        fc
          .array(fc.constantFrom(...words, 'x'), { minLength: 6, maxLength: 6 })
          .map((fill) => path.split('/').map((part, at) => (/^[:*]/.test(part) ? (fill[at] ?? 'x') : part))),
      );
    fc.assert(
      fc.property(fc.oneof(target, ofTable), (segments) => {
        const path = segments.join('/');
        const withoutRules = (paths: readonly string[]) =>
          paths.filter((each) => plain.find((route) => route.path === each)?.accepts === undefined);
        expect(withoutRules(pathsOf(path))).to.deep.equal(modelOf(path));
      }),
      { numRuns: 3000 },
    );
  });

  for (const [target, path, params] of [
    ['auth/token/lookup-self', 'auth/token/lookup-self', {}],
    ['auth/token/roles/Reader', 'auth/token/roles/:name', { name: 'Reader' }],
    ['auth/userpass/login/Ann', 'auth/*method/login/:name', { method: 'userpass', name: 'ann' }],
    ['sys/mounts/a/b', 'sys/mounts/*path', { path: 'a/b' }],
    ['sys/mounts/a/b/tune', 'sys/mounts/*path/tune', { path: 'a/b' }],
    ['sys/mounts/tune', 'sys/mounts/*path', { path: 'tune' }],
    ['sys/internal/ui/mounts/a', 'sys/internal/ui/mounts/*path', { path: 'a' }],
  ] as const)
    it(`take ${target} for ${path} first`, () => {
      const [first] = routes.matches(target.split('/'));
      expect(first?.route.path).to.equal(path);
      expect(first?.params).to.deep.equal(params);
    });

  for (const target of ['sys', 'auth', 'sys/none', 'Sys/mounts', 'sys/leader/x', 'other/x', 'constructor', '__proto__/x'])
    it(`do not lead to ${target}`, () => {
      expect(pathsOf(target)).to.deep.equal([]);
    });
});
