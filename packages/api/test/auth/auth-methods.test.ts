import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OpenedMethod } from '@transitd/access';
import type { Verb } from '@transitd/http';
import { expect } from 'chai';
import { authMethods } from '../../src/auth/auth-methods.ts';
import { methodRoutes } from '../../src/auth/method-routes.ts';
import { written } from '../../src/operation/answers.ts';
import { type AuthMethod, methodHandler, methodOperation } from '../../src/operation/auth-method.ts';
import type { Operation } from '../../src/operation/operation.ts';
import { type Served, served } from '../served.ts';

const httpMethods = { GET: 'get', LIST: 'get', POST: 'post', DELETE: 'delete' } as const;

/** Every path of every method, with its verb. */
const all = authMethods.flatMap(({ type, paths }) =>
  Object.entries(paths).flatMap(([path, operations]) =>
    (Object.keys(operations) as Verb[]).map((verb) => ({ type, path, verb })),
  ),
);

describe('an auth method', () => {
  let at: Served;
  let document: {
    paths: Readonly<Record<string, Readonly<Record<string, { readonly parameters: readonly { name: string }[] }>>>>;
  };
  before(async () => {
    at = await served();
    for (const { type } of authMethods) await at.ask(`POST sys/auth/${type}-here`, { body: { type } });
    document = (await at.ask('GET sys/internal/specs/openapi')).body;
  });
  after(() => at.close());

  const answerOf = async (method: string, path: string, verb: Verb) => {
    const list = verb === 'LIST' ? '?list=true' : '';
    const line = `${verb === 'LIST' ? 'GET' : verb} auth/${method}/${path.replaceAll(':name', 'n')}${list}`;
    return (await at.ask(line, verb === 'POST' ? { body: {} } : {})).body.errors?.[0] ?? '';
  };

  for (const { type, path, verb } of all) {
    it(`of type ${type} serves ${verb} ${path}, and other types only what they declare`, async () => {
      for (const other of authMethods) {
        const isDeclared = other.paths[path]?.[verb] !== undefined;
        const answer = await answerOf(`${other.type}-here`, path, verb);
        expect(/unsupported path|no handler/.test(answer), `${other.type}: ${answer}`).to.equal(!isDeclared);
      }
    });

    it(`of type ${type} has ${verb} ${path} in the OpenAPI document`, () => {
      const item = document.paths[`/auth/${type}-here/${path.replaceAll(/:(\w+)/g, '{$1}')}`];
      const operation = item?.[httpMethods[verb]];
      expect(operation, verb).to.be.an('object');
      if (verb === 'LIST') expect(operation?.parameters.map(({ name }) => name)).to.include('list');
    });
  }

  it('has no path in the OpenAPI document that it does not declare', () => {
    for (const { type, paths } of authMethods) {
      const prefix = `/auth/${type}-here/`;
      const there = Object.keys(document.paths).filter((path) => path.startsWith(prefix));
      const declared = Object.keys(paths).map((path) => prefix + path.replaceAll(/:(\w+)/g, '{$1}'));
      expect(there.toSorted()).to.deep.equal(declared.toSorted());
    }
  });
});

describe('the records and logins of an auth method', () => {
  const folder = join(import.meta.dirname, '../../src/auth');

  /** Returns what a file and the files of its folder that it imports import from elsewhere: `name from module`. */
  function importedBy(file: string): readonly string[] {
    const imports = [...readFileSync(file, 'utf8').matchAll(/import ([^;]+) from '([^']+)';/g)];
    return imports.flatMap(([, names = '', from = '']) =>
      from.startsWith('./')
        ? importedBy(join(file, '..', from))
        : (names.match(/\w+/g) ?? []).map((name) => `${name} from ${from}`),
    );
  }

  const inner = ['@transitd/access', '@transitd/event-loop', '@transitd/process', '@transitd/storage-fsm'];
  /** A record follows from the declarations of its fields. */
  const declares = [
    /^(?:type|FieldSchema|anything|list|map|string|unsupportedField) from @transitd\/http$/,
    /^(?:any|bool|credential|duration|int|text|textMap|texts) from @transitd\/http$/,
    / from \.\.\/\.\.\/operation\/(?:inert-fields|kept-fields|spellings)\.ts$/,
  ];

  for (const { type } of authMethods)
    it(`know nothing of requests and replies but the declarations of fields: ${type}`, () => {
      const file = join(folder, type, 'logins.ts');
      expect(existsSync(file), 'the folder is named after the type').to.equal(true);
      const outer = importedBy(file).filter((each) => / from (?:\.\.|@transitd\/)/.test(each));
      const others = outer.filter((each) => !inner.some((name) => each.endsWith(` from ${name}`)));
      expect(others.filter((each) => !declares.some((pattern) => pattern.test(each)))).to.deep.equal([]);
    });
});

describe('auth methods with one path', () => {
  const opened: OpenedMethod = { close: () => undefined };
  const withConfig = (type: string, capability: 'read' | 'update', name = 'config-write'): AuthMethod => ({
    type,
    open: () => opened,
    paths: {
      config: {
        POST: methodOperation(name, capability, methodHandler({ about: type, answers: written, run: async () => undefined })),
      },
    },
  });
  const operationOf = (...methods: AuthMethod[]): Operation | undefined => methodRoutes(methods)[0]?.operations.POST;

  it('share an operation, which is named after the method only if it has no other', () => {
    expect(operationOf(withConfig('one', 'update'))?.name).to.equal('one-config-write');
    const shared = operationOf(withConfig('one', 'update'), withConfig('other', 'update'));
    expect(shared?.name).to.equal('auth-config-write');
    expect(Object.keys(shared?.byType ?? {})).to.deep.equal(['one', 'other']);
  });

  it('are refused if they differ in the capability or the name of their operation', () => {
    const text = 'the auth methods with POST config declare different operations';
    expect(() => operationOf(withConfig('one', 'update'), withConfig('other', 'read'))).to.throw(text);
    expect(() => operationOf(withConfig('one', 'update'), withConfig('other', 'update', 'setup'))).to.throw(text);
  });
});
