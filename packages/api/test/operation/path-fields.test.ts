import { expect } from 'chai';
import { allRoutes } from '../../src/routes.ts';
import { TestMetrics } from '../test-metrics.ts';

describe('the fields of operations', () => {
  it('that each request has are parameters of the path', () => {
    const missing = allRoutes(new TestMetrics()).flatMap(({ path, operations }) =>
      Object.values(operations).flatMap(({ name: operation, takes = {}, byType = {} }) => {
        const schemas = [takes, ...Object.values(byType).map((each) => each.takes ?? {})];
        const inPath = schemas.flatMap((schema) => Object.keys(schema).filter((name) => schema[name]?.inPath));
        const params = [...path.matchAll(/[:*](\w+)/g)].map(([, name]) => name);
        return inPath.filter((name) => !params.includes(name)).map((name) => `${operation} at ${path}: ${name}`);
      }),
    );
    expect(missing).to.deep.equal([]);
  });
});
