import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { noContentReply, parsePath, type Verb } from '@transitd/http';
import type { Node } from '@transitd/node';
import { expect } from 'chai';
import fc from 'fast-check';
import pino from 'pino';
import { isBelowMount } from '../../src/operation/mount-routes.ts';
import { type OpenOperation, open, type Route } from '../../src/operation/operation.ts';
import { ControlRoutes } from '../../src/pipeline/control-routes.ts';
import type { RouteMatch } from '../../src/pipeline/request.ts';
import { isLookedUp, type RequestHead, RouteLookup } from '../../src/pipeline/route-lookup.ts';
import { createRouter } from '../../src/pipeline/router.ts';
import { slashAtEnd, unknownPath } from '../../src/pipeline/unrouted.ts';
import { allRoutes } from '../../src/routes.ts';
import { TestMetrics } from '../test-metrics.ts';

const outsideMounts = allRoutes(new TestMetrics()).filter((route) => !isBelowMount(route));
const lookup = new RouteLookup(outsideMounts.filter(isLookedUp));
const control = new ControlRoutes(outsideMounts.filter((route) => !isLookedUp(route)));
const find = (head: RequestHead): RouteMatch => lookup.find(head, undefined) ?? control.find(head);

/** Compares every route with the path, in the order of the table, without Express. */
const tried = new RouteLookup(outsideMounts);
const model = (head: RequestHead): Partial<RouteMatch> => {
  const operation = head.path.trailingSlash && head.verb !== 'LIST' ? slashAtEnd : unknownPath;
  return tried.find(head, undefined) ?? { operation, params: {}, canonical: head.path.path };
};

const headOf = (target: string, verb: Verb | undefined = 'GET'): RequestHead => {
  const url = `/v1/${target}`;
  return { path: parsePath(url), url, verb };
};
const routeOf = ({ operation }: RouteMatch): string | undefined =>
  outsideMounts.find(({ operations }) => Object.values(operations).includes(operation))?.path;

describe('routes outside mounts', () => {
  for (const route of outsideMounts)
    it(`lead to ${route.path}`, () => {
      const target = route.path
        .replaceAll(/[*:]method/g, 'userpass')
        .replaceAll(/:\w+/g, 'x')
        .replaceAll(/\*\w+/g, 'a/b');
      for (const [verb, operation] of Object.entries(route.operations))
        expect(find(headOf(target, verb as Verb)).operation).to.equal(operation);
    });

  it('are found as if every route were compared, for any path and verb', () => {
    const words = [...new Set(outsideMounts.flatMap(({ path }) => path.split('/').filter((part) => !/^[:*]/.test(part))))];
    const odd = `x Sys :name *path % %25 %2F !'()*~ {a} [x] ? # ; __proto__ ß 💥 \u00a0`.split(' ');
    const word = fc.oneof(fc.constantFrom(...words), fc.constantFrom(...odd), fc.string({ unit: 'grapheme' }));
    const written = fc.array(word, { minLength: 1, maxLength: 6 });
    const ofTable = fc
      .constantFrom(...outsideMounts)
      .chain(({ path }) =>
        fc
          .array(fc.oneof(word, fc.array(word, { minLength: 1, maxLength: 3 })), { minLength: 6, maxLength: 6 })
          .map((fill) => path.split('/').flatMap((part, at) => (/^[:*]/.test(part) ? (fill[at] ?? 'x') : part))),
      );
    const verb = fc.constantFrom<Verb | undefined>('GET', 'POST', 'DELETE', 'LIST', undefined);
    let [found, refused] = [0, 0];
    fc.assert(
      fc.property(fc.oneof(written, ofTable), fc.boolean(), verb, (segments, slash, method) => {
        const head = { ...headOf('x'), verb: method };
        const target = `/v1/${segments.map(encodeURIComponent).join('/')}${slash ? '/' : ''}`;
        let path: RequestHead['path'];
        try {
          path = parsePath(target);
        } catch {
          refused += 1;
          return;
        }
        const match = find({ ...head, path });
        expect(match).to.deep.include(model({ ...head, path }));
        if (match.operation !== unknownPath && match.operation !== slashAtEnd) found += 1;
      }),
      { numRuns: 5000 },
    );
    expect(found).to.be.above(1000);
    expect(refused).to.be.below(2500);
  });

  for (const [target, path, params] of [
    ['auth/token/lookup-self', 'auth/token/lookup-self', {}],
    ['auth/token/roles/Reader', 'auth/token/roles/:name', { name: 'Reader' }],
    ['auth/userpass/users/Ann', 'auth/*method/users/:name', { method: 'userpass', name: 'ann' }],
    ['auth/a/b/users/Ann', 'auth/*method/users/:name', { method: 'a/b', name: 'ann' }],
    ['auth/users/users/users', 'auth/*method/users/:name', { method: 'users', name: 'users' }],
    ['sys/mounts/a/b', 'sys/mounts/*path', { path: 'a/b' }],
    ['sys/mounts/a/b/tune', 'sys/mounts/*path/tune', { path: 'a/b' }],
    ['sys/mounts/tune', 'sys/mounts/*path', { path: 'tune' }],
    ['sys/internal/ui/mounts/a', 'sys/internal/ui/mounts/*path', { path: 'a' }],
    ['sys/mounts/%2541%25', 'sys/mounts/*path', { path: '%41%' }],
    ['sys/mounts/%252F', 'sys/mounts/*path', { path: '%2F' }],
    ['sys/mounts/%252e%252e/%3F%23', 'sys/mounts/*path', { path: '%2e%2e/?#' }],
    ['sys/mounts/...', 'sys/mounts/*path', { path: '...' }],
    ['sys/mounts/%F0%9F%92%A5/%C3%9F', 'sys/mounts/*path', { path: '💥/ß' }],
    ['sys/%6Dounts/a', 'sys/mounts/*path', { path: 'a' }],
  ] as const)
    it(`take ${target} for ${path} first`, () => {
      const match = find(headOf(target));
      expect(routeOf(match)).to.equal(path);
      expect(match.params).to.deep.equal(params);
    });

  const unknown = ['sys', 'auth', 'sys/none', 'Sys/leader', 'sys/leader/x', 'sys/Leader', 'sys/leader%20', 'other/x'];
  for (const target of [...unknown, 'constructor', '__proto__/x', 'sys/leader%3Fx', 'sys/leader%23', 'sys/:name', '*path'])
    it(`do not lead to ${target}`, () => {
      expect(find(headOf(target)).operation).to.equal(unknownPath);
    });

  it('have a trailing slash only for lists', () => {
    for (const verb of ['GET', 'LIST'] as const)
      expect(find(headOf('sys/policy/', verb)).operation).to.equal(find(headOf('sys/policy', verb)).operation);
    expect(find(headOf('sys/leader/')).operation).to.equal(slashAtEnd);
    expect(find(headOf('sys/none/')).operation).to.equal(slashAtEnd);
  });
});

describe('routes of the control plane', () => {
  const operation: OpenOperation = open({ name: 'any', about: 'Do it', answers: {}, run: () => noContentReply });
  const route = (path: string, more: Partial<Route> = {}): Route => ({ path, operations: { GET: operation }, ...more });

  it('may have any character in their literals', () => {
    const text = String.fromCharCode(...Array.from({ length: 94 }, (_, at) => 0x21 + at)).replace(/[/\\]/g, '');
    const path = `sys/a${text} ßü💥/:name`;
    const routes = new ControlRoutes([route(path)]);
    const target = path.replace(':name', '(x)').split('/').map(encodeURIComponent).join('/');
    expect(routes.find(headOf(target))).to.deep.include({ operation, params: { name: '(x)' } });
    expect(routes.find(headOf(target.replace('sys/a', 'sys/b'))).operation).to.equal(unknownPath);
  });

  it('throw what their conditions throw, instead of what Express makes of it', () => {
    const failing = route('sys/:name', {
      accepts: () => {
        throw new Error('a fault of ours');
      },
    });
    for (const routes of [[failing], [failing, route('sys/*path')]])
      expect(() => new ControlRoutes(routes).find(headOf('sys/a'))).to.throw('a fault of ours');
  });

  it('answer only as the pipeline does, without a header or a text of Express', async () => {
    const failing = route('sys/failing', {
      accepts: () => {
        throw new Error('a fault of ours');
      },
    });
    const node = { services: undefined, initialized: true } as unknown as Node;
    const options = { node, log: pino({ level: 'silent' }), metrics: new TestMetrics(), bodyBytesMax: 1000 };
    const server = createServer(createRouter({ ...options, routes: [failing, route('sys/:name')] })).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const ask = async (method: string, path: string) => {
      const response = await fetch(`http://127.0.0.1:${port}/v1/${path}`, { method });
      const names = [...response.headers.keys()].filter((name) => /^(?:x-powered-by|etag|allow)$/.test(name));
      return [response.status, names, (await response.text()).trim()];
    };
    try {
      expect(await ask('GET', 'sys/failing')).to.deep.equal([500, [], '{"errors":["internal error"]}']);
      expect(await ask('GET', 'sys/any')).to.deep.equal([204, [], '']);
      expect(await ask('OPTIONS', 'sys/any')).to.deep.equal([405, [], '{"errors":[]}']);
      expect((await ask('GET', 'sys/a/b')).slice(0, 2)).to.deep.equal([503, []]);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  it('are left to the next one, at once and up to the last, if they do not accept the parameters', () => {
    const refusing = Array.from({ length: 300 }, () => route('sys/:name', { accepts: () => false }));
    expect(new ControlRoutes([...refusing, route('sys/*path')]).find(headOf('sys/a'))).to.deep.include({
      operation,
      params: { path: 'a' },
    });
    expect(new ControlRoutes(refusing).find(headOf('sys/a')).operation).to.equal(unknownPath);
  });
});
