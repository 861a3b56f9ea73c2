import {
  bool,
  boolean,
  constant,
  dataReply,
  type FieldSchema,
  int,
  integer,
  list as listOf,
  noContent,
  object,
  type Reply,
  string,
  text,
  texts,
  writtenReply,
} from '@transitd/http';
import type { TokenManagedKeys } from '@transitd/node';
import { type ManagedKeyRecord, pkcs11Mechanisms, TransitError } from '@transitd/transit-engine';
import * as answers from '../operation/answers.ts';
import {
  type Asked,
  type Call,
  type Described,
  type GuardedOperation,
  guarded,
  pathParam,
  type Route,
} from '../operation/operation.ts';

const operation = <S extends FieldSchema = Record<never, never>>(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  described: Described<S>,
  run: (managedKeys: TokenManagedKeys, asked: Asked<S>) => Promise<Reply>,
): GuardedOperation =>
  guarded({ name, capability, ...described, run: ({ services }, asked) => run(services.managedKeys, asked) });

const nameIn = (call: Pick<Call, 'params'>): string => pathParam(call, 'name');
const name = text('name of the key', { required: true });

const writeFields = {
  name,
  library: text('name of a library in the configuration'),
  slot: text('number of the slot: this, or `token_label`'),
  token_label: text('label of the token'),
  pin: text('PIN of the token; shown to nobody'),
  key_label: text('label of the key in the token'),
  key_id: text('id of the key in the token'),
  mechanism: text('what the key does', { oneOf: Object.keys(pkcs11Mechanisms) }),
  key_bits: int('bits of a key that is generated', { min: 0 }),
  curve: text('curve of a key that is generated'),
  allow_generate_key: bool('a missing key is generated', { default: false }),
  any_mount: bool('every mount may use it', { default: false }),
  usages: texts('what it may be used for'),
} as const satisfies FieldSchema;

const described = { about: 'a key in a token: written anew', takes: writeFields, answers: answers.written };

const write = operation('managed-keys-write', 'update', described, async ({ registry }, { values, warnings, ...call }) => {
  await registry.write(nameIn(call), {
    library: values.library,
    slot: values.slot,
    tokenLabel: values.token_label,
    pin: values.pin,
    keyLabel: values.key_label,
    keyId: values.key_id,
    mechanism: values.mechanism,
    keyBits: values.key_bits,
    curve: values.curve,
    allowGenerateKey: values.allow_generate_key,
    anyMount: values.any_mount,
    usages: values.usages,
  });
  return writtenReply(warnings);
});

const shownSchema = object(
  {
    id: string,
    name: string,
    type: constant('pkcs11'),
    library: string,
    mechanism: string,
    allow_generate_key: boolean,
    any_mount: boolean,
    usages: listOf(string),
  },
  { slot: string, token_label: string, key_label: string, key_id: string, key_bits: integer, curve: string },
);

const read = operation(
  'managed-keys-read',
  'read',
  { about: 'a key in a token', takes: { name }, answers: answers.data(shownSchema) },
  async ({ registry }, call) => dataReply(JSON.stringify(shown(await registry.read(nameIn(call))))),
);

/** All but the PIN, which nobody is shown again. */
const shown = (record: ManagedKeyRecord) => ({
  id: record.id,
  name: record.name,
  type: 'pkcs11',
  library: record.library,
  ...(record.slot !== undefined && { slot: String(record.slot) }),
  ...(record.tokenLabel !== undefined && { token_label: record.tokenLabel }),
  ...(record.keyLabel !== undefined && { key_label: record.keyLabel }),
  ...(record.keyId !== undefined && { key_id: record.keyId }),
  mechanism: record.mechanism,
  ...(record.keyBits !== undefined && { key_bits: record.keyBits }),
  ...(record.curve !== undefined && { curve: record.curve }),
  allow_generate_key: record.allowGenerateKey,
  any_mount: record.anyMount,
  usages: record.usages,
});

const list = operation(
  'managed-keys-list',
  'list',
  { about: 'names of keys in tokens', answers: answers.names },
  async ({ registry }) => {
    const keys = await registry.list();
    if (keys.length === 0) throw new TransitError('not_found', 'no managed keys');
    return dataReply(JSON.stringify({ keys }));
  },
);

const remove = operation(
  'managed-keys-delete',
  'delete',
  { about: 'forgets a key; in its token it stays', takes: { name }, answers: answers.noContent },
  async ({ registry }, call) => {
    await registry.delete(nameIn(call));
    return noContent;
  },
);

/** Signs something random, so that nobody gets a signature of his own choice; makes the key first if it is missing and may be made. */
const testSign = operation(
  'managed-keys-test-sign',
  'update',
  { about: 'signs something random, to see whether it works', takes: { name }, answers: answers.written },
  async (managedKeys, { warnings, ...call }) => {
    const record = await managedKeys.registry.read(nameIn(call));
    await managedKeys.testSign(record);
    return writtenReply(warnings);
  },
);

/** Keys in PKCS#11 tokens: what they are called and where they lie. */
export const managedKeyRoutes: readonly Route[] = [
  { path: 'sys/managed-keys/pkcs11', operations: { LIST: list } },
  { path: 'sys/managed-keys/pkcs11/:name', operations: { GET: read, POST: write, DELETE: remove } },
  { path: 'sys/managed-keys/pkcs11/:name/test/sign', operations: { POST: testSign } },
];
