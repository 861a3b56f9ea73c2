/**
 * Plain objects by member, for a message to another thread: a list of short texts costs a tenth of as many objects. A member that has the
 * same value in all objects is sent once. An absent member and one that is undefined are the same.
 */
export interface Columns {
  readonly count: number;
  readonly members: readonly (readonly [name: string, column: Column])[];
}

type Column = { readonly all: unknown } | { readonly each: readonly unknown[] };

export function columnsOf(objects: readonly object[]): Columns {
  const names = new Set<string>();
  for (const object of objects) for (const name of Object.keys(object)) names.add(name);
  const members = [...names].map((name): readonly [string, Column] => {
    const valueIn = (object: object): unknown => (object as Readonly<Record<string, unknown>>)[name];
    const first = objects[0] && valueIn(objects[0]);
    return [name, objects.every((object) => valueIn(object) === first) ? { all: first } : { each: objects.map(valueIn) }];
  });
  return { count: objects.length, members };
}

export function objectsOf({ count, members }: Columns): object[] {
  return Array.from({ length: count }, (_, index) => {
    const object: Record<string, unknown> = {};
    for (const [name, column] of members) {
      const value = 'all' in column ? column.all : column.each[index];
      if (value !== undefined) object[name] = value;
    }
    return object;
  });
}
