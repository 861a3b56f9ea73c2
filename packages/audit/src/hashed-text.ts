import type { Steps } from '@transitd/event-loop';
import { anything, type JsonSchema } from '@transitd/http';
import type { HashText } from './audit-key.ts';

/** Names of algorithms, recorded in clear in the fields that hold one. Any other text in these fields is hashed. */
const algorithms = [
  /aes(?:128|192|256)-[a-z0-9]{3,8}|x?chacha20-poly1305/,
  /ed25519|ecdsa-p(?:256|384|521)|rsa-(?:2048|3072|4096)|ml-dsa|hybrid|hmac|managed_key/,
  /sha(?:1|2|3)(?:-\d{3})?|none|pss|pkcs1v15|asn1|jws/,
];
const algorithm = new RegExp(`^(?:${algorithms.map(({ source }) => source).join('|')})$`);
const algorithmFields = new Set([
  ...['type', 'key_type', 'hash_algorithm', 'decrypt_hash_algorithm', 'encrypt_hash_algorithm'],
  ...['signature_algorithm', 'marshaling_algorithm'],
]);

/** Number of values to hash in one step: a millisecond of work. */
const valuesPerStep = 100;

/** Declares every name and every number at any depth. */
const everyName: JsonSchema = {
  type: 'number',
  get items() {
    return everyName;
  },
  get additionalProperties() {
    return everyName;
  },
};

/**
 * Makes the JSON text of the members of a response for an entry: every string at any depth replaced by its hash; numbers, booleans and
 * names of members unchanged.
 */
export const hashedData = (value: unknown, hash: HashText): Steps<string> => hashedRequest(value, everyName, hash);

/**
 * Makes the JSON text of the members of a request for an entry. Names that the operation does not declare are hashed too: a secret that is
 * sent in the wrong format can be parsed as a name, for example a token in a form body instead of JSON. Numbers are hashed as their text
 * where the operation declares no number: a password of digits may be sent without quotes.
 */
export const hashedRequest = (value: unknown, schema: JsonSchema, hash: HashText): Steps<string> =>
  new Hashing(hash).textOf(value, schema, '');

class Hashing {
  readonly #hash: HashText;
  #values = 0;

  constructor(hash: HashText) {
    this.#hash = hash;
  }

  /** @param field - name of the member that has the value; empty for an item of a list, and for a member that is not declared */
  *textOf(value: unknown, schema: JsonSchema, field: string): Steps<string> {
    this.#values += 1;
    if (this.#values % valuesPerStep === 0) yield;
    if (typeof value === 'string')
      return JSON.stringify(algorithmFields.has(field) && algorithm.test(value) ? value : this.#hash(value));
    if (typeof value === 'number' && !declaresNumber(schema)) return JSON.stringify(this.#hash(String(value)));
    if (Array.isArray(value)) return yield* this.#list(value, schema.items ?? anything);
    if (hasJsonForm(value)) return yield* this.textOf(value.toJSON(), schema, field);
    if (typeof value === 'object' && value !== null) return yield* this.#members(value, schema);
    return JSON.stringify(value) ?? 'null';
  }

  *#list(items: readonly unknown[], schema: JsonSchema): Steps<string> {
    let texts = '';
    for (const item of items) texts += `${texts === '' ? '' : ','}${yield* this.textOf(item, schema, '')}`;
    return `[${texts}]`;
  }

  *#members(members: object, schema: JsonSchema): Steps<string> {
    let texts = '';
    for (const [name, member] of Object.entries(members)) {
      if (member === undefined) continue; // as in the JSON of a response
      const declared = memberSchema(schema, name);
      const shown = JSON.stringify(declared === undefined ? this.#hash(name) : name);
      const text = yield* this.textOf(member, declared ?? anything, declared === undefined ? '' : name);
      texts += `${texts === '' ? '' : ','}${shown}:${text}`;
    }
    return `{${texts}}`;
  }
}

const numberTypes: ReadonlySet<string> = new Set(['integer', 'number', 'boolean']); // a boolean may be sent as 0 or 1

const declaresNumber = ({ type = [], anyOf = [] }: JsonSchema): boolean =>
  [type].flat().some((name) => numberTypes.has(name)) || anyOf.some(declaresNumber);

/** Returns whether a value, such as a date, has another form in JSON. */
const hasJsonForm = (value: unknown): value is { toJSON(): unknown } =>
  typeof (value as { readonly toJSON?: unknown } | null | undefined)?.toJSON === 'function';

/** Returns the schema of a member; undefined when it is not declared. A map declares every name. */
function memberSchema(
  { properties = {}, additionalProperties, anyOf = [], allOf = [] }: JsonSchema,
  name: string,
): JsonSchema | undefined {
  if (Object.hasOwn(properties, name)) return properties[name];
  if (typeof additionalProperties === 'object') return additionalProperties;
  if (additionalProperties === true) return anything;
  for (const other of [...anyOf, ...allOf]) {
    const found = memberSchema(other, name);
    if (found !== undefined) return found;
  }
  return undefined;
}
