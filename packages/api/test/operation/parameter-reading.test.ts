import { expect } from 'chai';
import { Acl, permits } from '../../../access/src/policy/acl.ts';
import { parsePolicy } from '../../../access/src/policy/policy-text.ts';
import { readingOf } from '../../src/operation/parameter-reading.ts';
import { allRoutes } from '../../src/routes.ts';
import { TestMetrics } from '../test-metrics.ts';

describe('a pattern of allowed values', () => {
  it('must match every part of a field that is read as a list, under each of its names', () => {
    const policy = (name: string) =>
      new Acl([parsePolicy(`path "p" { capabilities = ["update"] allowed_parameters = { "*" = [], "${name}" = ["dev-*"] } }`)]);
    let checked = 0;
    for (const { operations } of allRoutes(new TestMetrics()))
      for (const operation of Object.values(operations))
        for (const takes of [operation.takes, ...Object.values(operation.byType ?? {}).map(({ takes }) => takes)])
          for (const [field, { kind, aliasOf = field }] of Object.entries(takes ?? {})) {
            if (kind !== 'strings') continue;
            const reading = readingOf(operation, { params: {} });
            const grants = (rule: string, value: unknown): boolean =>
              permits(policy(rule), { capability: 'update', path: 'p', parameters: { [field]: value }, reading });
            for (const rule of [field, aliasOf]) {
              checked += 1;
              const answers = ['dev-a,admin', ['dev-a', 'admin'], 'dev-a,dev-b', ['dev-a', 'dev-b']].map((value) =>
                grants(rule, value),
              );
              expect(answers, `${operation.name} ${field}`).to.deep.equal([false, false, true, true]);
            }
          }
    expect(checked).to.be.above(50);
  });
});
