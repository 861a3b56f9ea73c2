import { TimeSlice } from '@transitd/event-loop';
import { type Body, converted, type Field, type FieldSchema, isSet, type JsonValue, RequestError } from '@transitd/http';

/**
 * Fields whose loss weakens the result without the caller noticing: a ciphertext is not bound to the data, a signature has no context or
 * another hash. A request that has one of them where it is not read is refused. Other fields cause a warning there.
 */
const weakening: ReadonlySet<string> = new Set(['associated_data', 'signature_context', 'hash_algorithm', 'algorithm']);

type Values = Readonly<Record<string, unknown>>;

/** The fields of an operation that may have a batch. */
export interface BatchFields {
  /** Of the request. */
  readonly takes: FieldSchema;
  /** Of an item; empty for an operation without batches. */
  readonly inItems: ReadonlyMap<string, Field>;
  /** Names of fields that are not read in items of this operation cause a warning there; other names do not, as in the peers. */
  readonly known: ReadonlySet<string>;
  /** Fields of an item that are also read in the request, as the value for all items. */
  readonly forAllItems: readonly string[];
}

/** The values of a request, with those of the items converted. */
export interface Input {
  readonly values: Values;
  /** Returns whether the request or an item sets this field, to another value than the one that is in force without it. */
  sets(name: string): boolean;
}

/** Returns those of the names that a request sets, to another value than the one that is in force without it. */
export const setIn = (takes: FieldSchema, values: Values, names: readonly string[]): readonly string[] =>
  names.filter((name) => isSet(values[name] as JsonValue | undefined) && values[name] !== takes[name]?.default);

/** Returns the warning that names have no effect; none for no names. @param where - the place, or the reason */
export const withoutEffect = (names: readonly string[], where: string): readonly string[] =>
  names.length === 0 ? [] : [`These parameters have no effect ${where}: [${[...names].sort().join(' ')}]`];

/**
 * Reads the batch of a request. If a batch is given, only its items count. Without one, the answer needs no promise.
 * @param warnings - gets the warnings about fields without effect, also if the request is refused
 * @throws RequestError `invalid_request` if a field without effect weakens the result
 */
export function readInput(fields: BatchFields, values: Values, warnings: string[]): Input | Promise<Input> {
  const { takes } = fields;
  const batch = values['batch_input'] as JsonValue | undefined;
  if (batch !== undefined && batch !== null) return readBatch(fields, values, { batch, warnings });
  warnings.push(...withoutEffect(setIn(takes, values, ['partial_failure_response_code']), 'without batch_input'));
  return { values, sets: (name) => setIn(takes, values, [name]).length > 0 };
}

async function readBatch(
  fields: BatchFields,
  values: Values,
  { batch, warnings }: { readonly batch: JsonValue; readonly warnings: string[] },
): Promise<Input> {
  const { takes, inItems, forAllItems } = fields;
  const perItem = [...inItems.keys()].filter((name) => Object.hasOwn(takes, name) && !forAllItems.includes(name));
  const beside = setIn(takes, values, perItem);
  const harmless = beside.filter((name) => !weakening.has(name));
  warnings.push(...withoutEffect(harmless, 'beside batch_input'));
  const weakened = beside.find((name) => weakening.has(name));
  if (weakened !== undefined)
    throw new RequestError('invalid_request', `${weakened} has no effect beside batch_input: set it in the items`);
  const { items, hasContext, unused } = Array.isArray(batch) ? await readItems(fields, values, batch) : nothingIn(batch);
  warnings.push(...withoutEffect(unused, 'in items of batch_input'));
  return {
    values: items === batch ? values : { ...values, batch_input: items },
    sets: (name) => (perItem.includes(name) ? name === 'context' && hasContext : setIn(takes, values, [name]).length > 0),
  };
}

interface Items {
  readonly items: JsonValue;
  /** Some item has a context. */
  readonly hasContext: boolean;
  /** Names of fields that items have and that are not read there. */
  readonly unused: readonly string[];
}

/** The engine refuses a batch that is no list. */
const nothingIn = (items: JsonValue): Items => ({ items, hasContext: false, unused: [] });

/**
 * Converts the values of items as those of a request. A value that cannot be converted stays as it is: the engine refuses it and names its
 * place. Works in time slices.
 */
async function readItems(fields: BatchFields, values: Values, batch: readonly JsonValue[]): Promise<Items> {
  const unused = new Set<string>();
  const slice = new TimeSlice();
  let hasContext = false;
  let items: JsonValue[] | undefined;
  for (const [index, item] of batch.entries()) {
    if (slice.isOver) await slice.next();
    if (typeof item !== 'object' || item === null || Array.isArray(item)) continue;
    const members = item as Body;
    let changed: Record<string, JsonValue> | undefined;
    for (const name in members) {
      const value = members[name];
      const field = fields.inItems.get(name);
      if (field === undefined) {
        if (!fields.known.has(name) || !isSet(value)) continue;
        checkInItem(fields, values, { name, value, index });
        unused.add(name);
        continue;
      }
      if (name === 'context' && isSet(value)) hasContext = true;
      if (typeof value === (field.kind === 'int' ? 'number' : 'string') || value === null) continue;
      const read = convertedIfPossible(name, field, value);
      if (read !== undefined) changed = Object.assign(changed ?? { ...members }, { [name]: read });
    }
    if (changed === undefined) continue;
    items ??= [...batch];
    items[index] = changed;
  }
  return { items: items ?? batch, hasContext, unused: [...unused] };
}

/** @throws RequestError `invalid_request` if a field that is not read in items weakens the result, and is not in force anyway */
function checkInItem(
  { takes }: BatchFields,
  values: Values,
  { name, value, index }: { readonly name: string; readonly value: JsonValue | undefined; readonly index: number },
): void {
  if (!weakening.has(name) || !Object.hasOwn(takes, name) || value === (values[name] ?? takes[name]?.default)) return;
  throw new RequestError(
    'invalid_request',
    `'[${index}].${name}' has no effect in an item of batch_input: set it in the request`,
  );
}

function convertedIfPossible(name: string, field: Field, value: JsonValue | undefined): JsonValue | undefined {
  try {
    return converted(name, field, value) as JsonValue | undefined;
  } catch (error) {
    if (error instanceof RequestError) return undefined;
    throw error;
  }
}
