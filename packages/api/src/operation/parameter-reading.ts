import type { ParameterReading } from '@transitd/access';
import type { FieldSchema } from '@transitd/http';
import type { Call, Operation } from './operation.ts';

type Reading = Required<Pick<ParameterReading, 'otherNames' | 'inner'>>;

const readings = new WeakMap<Operation, Reading>();

/**
 * Returns how an operation reads the members of this request, derived from its declared fields. Parameter rules of policies compare values
 * in the same way.
 */
export function readingOf(operation: Operation, { params }: Pick<Call, 'params'>): ParameterReading {
  const known = readings.get(operation) ?? declared(operation);
  readings.set(operation, known);
  const inPath = Object.fromEntries(Object.entries(params).filter(([name]) => name !== 'mount' && name !== 'method'));
  return { ...known, inPath };
}

function declared({ takes, byType = {} }: Operation): Reading {
  const schemas: readonly FieldSchema[] = [takes ?? {}, ...Object.values(byType).map(({ takes = {} }) => takes)];
  const otherNames = new Map<string, Set<string>>();
  const inner = new Map<string, ReadonlySet<string>>();
  for (const schema of schemas) {
    for (const [name, { aliasOf = name, shape }] of Object.entries(schema)) {
      const group = otherNames.get(aliasOf) ?? new Set([aliasOf]);
      otherNames.set(aliasOf, group.add(name));
      otherNames.set(name, group);
      const members = shape?.properties ?? shape?.items?.properties;
      if (members !== undefined) inner.set(name, new Set(Object.keys(members)));
    }
  }
  const others = [...otherNames]
    .map(([name, group]) => [name, [...group].filter((other) => other !== name)] as const)
    .filter(([, names]) => names.length > 0);
  return { otherNames: new Map(others), inner };
}
