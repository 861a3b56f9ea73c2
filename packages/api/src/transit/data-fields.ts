import { TimeSlice } from '@transitd/event-loop';
import {
  any,
  base64,
  converted,
  type Field,
  type FieldKind,
  type FieldSchema,
  type Fields,
  int,
  isSet,
  type JsonSchema,
  type JsonValue,
  RequestError,
  text,
} from '@transitd/http';
import { batchItemsMax, checkBatchLength, cmacBytesMin, defaultHash, hashNames, type KeyTraits } from '@transitd/transit-engine';
import { type CamelCase, camelCase } from '../operation/kept-fields.ts';

/**
 * A field of an operation on data. It is declared once: the fields of a request, those of an item of a batch, their values and their
 * warnings follow from it.
 */
interface DataField<Kind extends FieldKind = FieldKind> extends Field<Kind> {
  /**
   * Where the field counts if there is a batch. Absent: in the request, for all items. `own`: in each item, not beside the batch.
   * `default`: in each item; the request has the value of the items that do not set it. `only`: the same as `own`, and a single request
   * does not have it.
   */
  readonly perItem?: 'own' | 'default' | 'only';
  /**
   * Losing the field weakens the result without the caller noticing: a ciphertext is not bound to the data, a signature has no context or
   * another hash. A request that has it where it is not read is refused. Other fields cause a warning there.
   */
  readonly weakens?: true;
  /**
   * Returns the value that counts, which another field may set; undefined if that of this field does. Another value of this field causes a
   * warning.
   */
  readonly inForce?: (request: Values) => unknown;
  /** Returns whether a key uses the field; if not, the field causes a warning. Absent if each key uses or refuses it. */
  readonly usedBy?: (key: KeyTraits, request: Values) => boolean;
  /** Kinds of values to verify on which the field has no effect; there it causes a warning. */
  readonly unusedFor?: readonly string[];
}

/** Fields by name, path parameters included. An operation with the field `reference` accepts batches. */
export type DataSchema = Readonly<Record<string, DataField>>;

type Values = Readonly<Record<string, unknown>>;
type NamedAsInEngine<V> = { readonly [Name in keyof V & string as CamelCase<Name>]: V[Name] };
type OfItems<S extends DataSchema> = { [Name in keyof S]: S[Name] extends { perItem: string } ? Name : never }[keyof S];

/** The converted values of a single request, or of a batch and its items, under the names of the engine: `keyVersion`. */
export type DataRequest<S extends DataSchema> = NamedAsInEngine<Fields<S>['values']> & {
  /** Absent without a batch. With one, the request has no value that each item has itself. */
  readonly items?: readonly NamedAsInEngine<Pick<Fields<S>['values'], OfItems<S>>>[];
};

const paddings = { oneOf: ['oaep', 'pkcs1v15'], default: 'oaep' };
/** Hashes of HMACs, signatures and OAEP. */
export const hashesWithSha1 = ['sha1', ...hashNames];
const oaepHash = { oneOf: hashesWithSha1, default: defaultHash };
export const wholeMacBytes = 16;

/** The lengths of a CMAC that the engine makes: all bytes, or a part that it would also verify. */
export const macLengths: JsonSchema = {
  enum: [0, ...Array.from({ length: wholeMacBytes - cmacBytesMin + 1 }, (_, i) => cmacBytesMin + i)],
};

/** Fields of items. One that another operation reads in its items is warned of. */
export const itemFields = {
  plaintext: { ...base64('Plaintext', { required: true }), perItem: 'own' },
  ciphertext: { ...text('Ciphertext, with its prefix', { required: true, long: true }), perItem: 'own' },
  context: {
    ...base64('Key derivation context'),
    perItem: 'own',
    usedBy: ({ derived }: KeyTraits) => derived,
    unusedFor: ['hmac', 'cmac'],
  },
  associated_data: {
    ...base64('Additional authenticated data; not part of the ciphertext'),
    perItem: 'own',
    weakens: true,
  },
  nonce: { ...base64('Nonce, if the key accepts one'), perItem: 'own' },
  key_version: { ...int('Key version; 0 for the latest', { min: 0, default: 0 }), perItem: 'own' },
  padding_scheme: { ...text('Padding scheme, for RSA keys', paddings), perItem: 'own' },
  decrypt_padding_scheme: { ...text('Padding scheme for decryption, for RSA keys', paddings), perItem: 'own' },
  encrypt_padding_scheme: { ...text('Padding scheme for encryption, for RSA keys', paddings), perItem: 'own' },
  hash_algorithm: { ...text('Hash of OAEP, for RSA keys', oaepHash), perItem: 'own', weakens: true },
  decrypt_hash_algorithm: { ...text('Hash of OAEP for decryption, for RSA keys', oaepHash), perItem: 'own', weakens: true },
  encrypt_hash_algorithm: { ...text('Hash of OAEP for encryption, for RSA keys', oaepHash), perItem: 'own', weakens: true },
  input: { ...base64('Input data', { required: true }), perItem: 'own' },
  signature: { ...text('Signature to verify', { long: true }), perItem: 'own' },
  hmac: { ...text('HMAC to verify', { long: true }), perItem: 'own' },
  cmac: { ...text('CMAC to verify', { long: true }), perItem: 'own' },
  mac_length: {
    ...int('Length of the CMAC in bytes; 0 means all 16', { default: 0, shape: macLengths }),
    perItem: 'default',
    unusedFor: ['signature', 'hmac'],
  },
  reference: { ...text('Any string; returned with the result of this item', { long: true }), perItem: 'only' },
} as const satisfies DataSchema;

/** Fields of every request that may have a batch. */
const ofBatches = {
  partial_failure_response_code: int('HTTP status if some items of a batch fail; not 204, 205 or 304', {
    default: 400,
    min: 200,
    max: 599,
  }),
} as const satisfies FieldSchema;

/** Returns the fields of a request: those declared and, for an operation with batches, the batch. */
export function requestFields(declared: DataSchema): FieldSchema {
  if (!Object.hasOwn(declared, 'reference')) return declared;
  const request: Record<string, Field> = { ...ofBatches };
  const items: Record<string, Field> = {};
  for (const [name, field] of Object.entries(declared)) {
    const { required, default: _ofRequest, ...inherited } = field;
    if (field.perItem !== undefined) items[name] = field.perItem === 'default' ? inherited : field;
    if (field.perItem === 'only') continue;
    request[name] =
      field.perItem !== undefined && required
        ? { ...inherited, about: `${field.about}; required unless \`batch_input\` is given` }
        : field;
  }
  const shape = { minItems: 1, maxItems: batchItemsMax };
  return { ...request, batch_input: any('Items of a batch; if given, the single input is ignored', { items, shape }) };
}

/** The values of a request. */
export interface Input<S extends DataSchema> {
  readonly request: DataRequest<S>;
  /** Absent unless a batch has it. */
  readonly partialFailureStatus?: number | undefined;
  /** Returns whether the request or an item sets this field, to another value than the one that is in force without it. */
  sets(name: string): boolean;
}

/** Reads the requests of an operation. */
export class DataReader<S extends DataSchema> {
  readonly #declared: DataSchema;
  readonly #takes: FieldSchema;
  /** Each field with its name of the engine; `#shared` without those that count only in items. */
  readonly #names: readonly Named[];
  readonly #shared: readonly Named[];
  /** All values of a request or an item, absent: a copy of it gets the given ones, so that all have the same shape. */
  readonly #request: Values;
  readonly #item: Values;
  readonly #inItems: ReadonlyMap<string, ItemField>;
  readonly #besideBatch: readonly string[];
  /** The fields whose value another one may set, which most operations have few of. */
  readonly #overridable: readonly Overridable[];

  constructor(declared: DataSchema, takes: FieldSchema) {
    const names = Object.keys(declared).map((name) => [name, camelCase(name)] as const);
    const inItems = names.filter(([name]) => declared[name]?.perItem !== undefined);
    this.#declared = declared;
    this.#takes = takes;
    this.#names = names;
    this.#shared = names.filter(([name]) => declared[name]?.perItem !== 'own');
    this.#request = absent(names);
    this.#item = absent(inItems);
    this.#inItems = new Map(inItems.map(([name, to]) => [name, itemField(to, takes['batch_input']?.items?.[name])]));
    this.#besideBatch = inItems.map(([name]) => name).filter((name) => declared[name]?.perItem === 'own');
    this.#overridable = names.flatMap(([name, to]) => {
      const { inForce, perItem } = declared[name] ?? {};
      return inForce === undefined ? [] : { name, to, inForce, isInItems: perItem !== undefined };
    });
  }

  /** Returns the values of a request without a batch. */
  single(values: Values): DataRequest<S> {
    return this.#named(values, this.#names);
  }

  /**
   * Reads a request. If it has a batch, only the items of it count. Without one, the answer needs no promise.
   * @param warnings - gets the warnings about fields without effect, also if the request is refused
   * @throws RequestError `invalid_request` if a field without effect weakens the result, or an item cannot be read
   */
  read(values: Values, warnings: string[]): Input<S> | Promise<Input<S>> {
    const batch = values['batch_input'] as JsonValue | undefined;
    if (batch !== undefined && batch !== null) return this.#readBatch(values, batch, warnings);
    warnings.push(...withoutEffect(setIn(this.#takes, values, ['partial_failure_response_code']), 'without batch_input'));
    return { request: this.single(values), sets: (name) => isSetIn(this.#takes, values, name) };
  }

  /** Returns the fields that the request or an item sets to another value than the one that is in force. */
  overridden(request: DataRequest<S>): readonly string[] {
    const { items = [] } = request;
    const isOverridden = ({ to, inForce, isInItems }: Overridable): boolean => {
      const value = inForce(request);
      const isOther = (given: Values): boolean => isSet(given[to] as JsonValue | undefined) && given[to] !== value;
      return value !== undefined && (isOther(request) || (isInItems && items.some(isOther)));
    };
    return this.#overridable.filter(isOverridden).map(({ name }) => name);
  }

  async #readBatch(values: Values, batch: JsonValue, warnings: string[]): Promise<Input<S>> {
    const beside = setIn(this.#takes, values, this.#besideBatch);
    const weakened = beside.find((name) => this.#declared[name]?.weakens);
    const harmless = beside.filter((name) => !this.#declared[name]?.weakens);
    warnings.push(...withoutEffect(harmless, 'beside batch_input'));
    if (weakened !== undefined)
      throw new RequestError('invalid_request', `${weakened} has no effect beside batch_input: set it in the items`);
    const shared = this.#named(values, this.#shared);
    const { items, set, unread, refused } = await this.#readItems(batch);
    const request: DataRequest<S> = { ...shared, items: items as NonNullable<DataRequest<S>['items']> };
    for (const [name, given] of unread) this.#checkUnread(request, name, given);
    warnings.push(...withoutEffect([...unread.keys()], 'in items of batch_input'));
    if (refused !== undefined) throw refused; // with the warnings about all items
    return {
      request,
      partialFailureStatus: values['partial_failure_response_code'] as number | undefined,
      sets: (name) => set.has(name) || (!this.#besideBatch.includes(name) && isSetIn(this.#takes, values, name)),
    };
  }

  /** Works in time slices. */
  async #readItems(batch: JsonValue) {
    if (!Array.isArray(batch)) throw unreadable(`source data must be an array or slice, got ${kindOf(batch)}`);
    checkBatchLength(batch.length);
    const items: Values[] = [];
    const set = new Set<string>();
    const unread = new Map<string, Given[]>();
    let refused: RequestError | undefined;
    const slice = new TimeSlice();
    for (const [index, members] of batch.entries()) {
      if (slice.isOver) await slice.next();
      const item: Record<string, unknown> = { ...this.#item };
      items.push(item);
      if (typeof members !== 'object' || members === null || Array.isArray(members)) {
        refused ??= unreadable(`[${index}] expected a map, got '${kindOf(members)}'`);
        continue;
      }
      for (const name in members) {
        const value: JsonValue = members[name];
        const known = this.#inItems.get(name);
        if (known !== undefined) {
          const read = known.isData && typeof value === 'string' ? value : readIn(index, name, known.field, value);
          if (read instanceof RequestError) refused ??= read;
          else item[known.to] = read;
          if (known.mayBeUnused && isSet(value) && read !== known.field.default) set.add(name);
        } else if ((Object.hasOwn(this.#takes, name) || Object.hasOwn(itemFields, name)) && isSet(value)) {
          const given = unread.get(name) ?? [];
          // If two values differ, one of them differs from the value in force.
          if (given.length === 0 || (given.length === 1 && given[0]?.value !== value))
            unread.set(name, [...given, { value, index }]);
        }
      }
    }
    return { items, set, unread, refused };
  }

  /** @throws RequestError `invalid_request` if a field that is not read in items weakens the result, and is not in force anyway */
  #checkUnread(request: Values, name: string, given: readonly Given[]): void {
    const field = this.#declared[name];
    if (field?.weakens === undefined) return;
    const inForce = field.inForce === undefined ? (request[camelCase(name)] ?? field.default) : field.inForce(request);
    const other = given.find(({ value }) => value !== inForce);
    if (other === undefined) return;
    const advice = field.unsupported ?? 'set it in the request';
    const refusal = `'[${other.index}].${name}' has no effect in an item of batch_input: ${advice}`;
    throw new RequestError('invalid_request', refusal);
  }

  #named(values: Values, names: readonly Named[]): DataRequest<S> {
    const request: Record<string, unknown> = { ...this.#request };
    for (const [name, to] of names) if (values[name] !== undefined) request[to] = values[name];
    return request as DataRequest<S>;
  }
}

/** Returns whether a request sets this field, to another value than the one that is in force without it. */
const isSetIn = (takes: FieldSchema, values: Values, name: string): boolean =>
  isSet(values[name] as JsonValue | undefined) && values[name] !== takes[name]?.default;

/** Returns those of the names that a request sets, to another value than the one that is in force without it. */
export const setIn = (takes: FieldSchema, values: Values, names: readonly string[]): readonly string[] =>
  names.filter((name) => isSetIn(takes, values, name));

/** Returns the warning that names have no effect; none for no names. @param where - the place, or the reason */
export const withoutEffect = (names: readonly string[], where: string): readonly string[] =>
  names.length === 0 ? [] : [`These parameters have no effect ${where}: [${[...names].sort().join(' ')}]`];

type Named = readonly [name: string, to: string];

const absent = (names: readonly Named[]): Values => Object.fromEntries(names.map(([, to]) => [to, undefined]));

/** A field whose value another field may set. */
interface Overridable {
  readonly name: string;
  /** Name of the engine. */
  readonly to: string;
  readonly inForce: NonNullable<DataField['inForce']>;
  readonly isInItems: boolean;
}

interface ItemField {
  /** Name of the engine. */
  readonly to: string;
  readonly field: DataField;
  /** A text of any length: it needs no conversion. */
  readonly isData: boolean;
  readonly mayBeUnused: boolean;
}

function itemField(to: string, field: DataField = any('')): ItemField {
  const isData = field.kind === 'string' && field.long === true;
  return { to, field, isData, mayBeUnused: field.usedBy !== undefined || field.unusedFor !== undefined };
}

/** A value in an item where its field is not read. */
interface Given {
  readonly value: JsonValue;
  readonly index: number;
}

/** Converts a value as that of a request; returns the refusal, with the place of the value, if that is not possible. */
function readIn(index: number, name: string, field: Field, value: JsonValue): unknown {
  try {
    return converted(name, field, value);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    const reason =
      field.kind === 'string' && typeof value === 'string'
        ? 'is too long'
        : `expected type '${field.kind}', got unconvertible type '${kindOf(value)}'`;
    return unreadable(`'[${index}].${name}' ${reason}`);
  }
}

const unreadable = (fault: string): RequestError => new RequestError('invalid_request', `failed to parse batch input: ${fault}`);

/** Returns the name of a value's type for an error text. */
const kindOf = (value: JsonValue): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value === 'object' ? 'map' : typeof value;
