import type { Meaning, ParameterReading, ParameterValue } from '@transitd/access';
import { type Field, type FieldSchema, textCharsMax, textsMax } from '@transitd/http';
import type { Call, Operation } from './operation.ts';

type Reading = Required<Pick<ParameterReading, 'otherNames' | 'inner' | 'split' | 'meanings' | 'innerMeanings' | 'conditions'>>;

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
  const meanings = new Map<string, Meaning>();
  const innerMeanings = new Map<string, Meaning>();
  const split = new Set<string>();
  const conditions = new Set<string>();
  for (const schema of schemas) {
    for (const [name, field] of Object.entries(schema)) {
      const { aliasOf = name, kind } = field;
      if (kind === 'strings') split.add(name);
      if (field.condition) conditions.add(name);
      meanings.set(name, meaningOf(field));
      const group = otherNames.get(aliasOf) ?? new Set([aliasOf]);
      otherNames.set(aliasOf, group.add(name));
      otherNames.set(name, group);
      const members = field.members ?? field.items;
      if (members === undefined) continue;
      inner.set(name, new Set(Object.keys(members)));
      for (const [member, declared] of Object.entries(members)) {
        if (declared.kind === 'strings') split.add(member);
        innerMeanings.set(member, meaningOf(declared));
      }
    }
  }
  const others = [...otherNames]
    .map(([name, group]) => [name, [...group].filter((other) => other !== name)] as const)
    .filter(([, names]) => names.length > 0);
  return { otherNames: new Map(others), inner, split, meanings, innerMeanings, conditions };
}

/** Returns what the conversion of a field makes of its values: an empty or omitted value may be the default, and a TTL `system` is 0. */
function meaningOf({ kind, default: absent, initial = absent, spellings, long }: Field): Meaning {
  const isNumber = kind === 'int' || kind === 'duration';
  return (value, members) => {
    // An operation refuses a longer text, and a longer list.
    const isRead = (one: ParameterValue | undefined): boolean =>
      long === true || typeof one !== 'string' || one.length <= textCharsMax;
    const spelled = (values: readonly (ParameterValue | undefined)[]): readonly ParameterValue[] =>
      spellings === undefined ? [] : values.filter(isRead).flatMap((one) => spellings(one, members));
    const isList = spellings !== undefined && kind === 'strings' && typeof value === 'string';
    const written = isList ? value.split(',', textsMax).map((part) => part.trim()) : [value];
    if (value === 'system' && kind === 'lease') return [0];
    if (value === '' && isNumber) return [0];
    if (value !== undefined && value !== '') return spelled(written);
    return [...spelled(written), ...(initial === undefined ? [] : [...spelled([initial]), initial])];
  };
}
