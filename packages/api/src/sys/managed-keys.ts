import {
  bool,
  constant,
  dataReply,
  type FieldSchema,
  int,
  noContentReply,
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
import { memberSchemas, membersIn, propertiesIn } from '../operation/kept-fields.ts';
import {
  type Call,
  type GuardedOperation,
  guarded,
  type OperationDescription,
  pathParam,
  type Route,
  type TypedCall,
} from '../operation/operation.ts';
import { keyIdSpellings, mechanismSpellings } from '../operation/spellings.ts';

const managedKeyOperation = <S extends FieldSchema = Record<never, never>>(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  description: OperationDescription<S>,
  run: (managedKeys: TokenManagedKeys, call: TypedCall<S>) => Promise<Reply>,
): GuardedOperation =>
  guarded({ name, capability, ...description, run: ({ services }, call) => run(services.managedKeys, call) });

const nameIn = (call: Pick<Call, 'params'>): string => pathParam(call, 'name');
const name = text('Name of the managed key', { required: true });

const keyFields = {
  library: text('Name of a PKCS#11 library in the configuration file'),
  slot: text('Slot number; set either `slot` or `token_label`'),
  token_label: text('Label of the PKCS#11 token'),
  pin: text('PIN of the PKCS#11 token; write-only'),
  key_label: text('Label of the key in the PKCS#11 token'),
  key_id: text('ID of the key in the PKCS#11 token', { spellings: keyIdSpellings }),
  mechanism: text('PKCS#11 mechanism', { oneOf: Object.keys(pkcs11Mechanisms), spellings: mechanismSpellings }),
  key_bits: int('Length in bits of a generated key', { min: 0 }),
  curve: text('Curve of a generated key'),
  allow_generate_key: bool('Generate the key if it is missing', { default: false }),
  any_mount: bool('Every mount may use the key', { default: false }),
  usages: texts('Allowed usages'),
} as const satisfies FieldSchema;

const description = { about: 'Create or replace a managed key', takes: { name, ...keyFields }, answers: answers.written };

const write = managedKeyOperation(
  'managed-keys-write',
  'update',
  description,
  async ({ registry }, { values, warnings, ...call }) => {
    await registry.write(nameIn(call), propertiesIn(keyFields, values));
    return writtenReply(warnings);
  },
);

const { pin: _, ...shownFields } = keyFields;
const { slot, token_label, key_label, key_id, key_bits, curve, ...always } = memberSchemas(shownFields);
const shownSchema = object(
  { id: string, name: string, type: constant('pkcs11'), ...always },
  { slot, token_label, key_label, key_id, key_bits, curve },
);

const read = managedKeyOperation(
  'managed-keys-read',
  'read',
  { about: 'Read a managed key', takes: { name }, answers: answers.data(shownSchema) },
  async ({ registry }, call) => dataReply(managedKeyJson(await registry.read(nameIn(call)))),
);

/** Returns a managed key as JSON without the PIN, which is write-only. */
const managedKeyJson = (record: ManagedKeyRecord) => ({
  ...{ id: record.id, name: record.name, type: 'pkcs11' },
  ...membersIn(shownFields, { ...record, slot: record.slot === undefined ? undefined : String(record.slot) }),
});

const list = managedKeyOperation(
  'managed-keys-list',
  'list',
  { about: 'List the names of managed keys', answers: answers.names },
  async ({ registry }) => {
    const keys = await registry.list();
    if (keys.length === 0) throw new TransitError('not_found', 'no managed keys');
    return dataReply({ keys });
  },
);

const remove = managedKeyOperation(
  'managed-keys-delete',
  'delete',
  { about: 'Delete a managed key; the key in the PKCS#11 token is kept', takes: { name }, answers: answers.written },
  async ({ registry }, call) => {
    await registry.delete(nameIn(call));
    return noContentReply;
  },
);

/** Signs random data, so that the caller cannot choose the signed data. Generates a missing key first, if the record allows it. */
const testSign = managedKeyOperation(
  'managed-keys-test-sign',
  'update',
  { about: 'Test a managed key by signing random data', takes: { name }, answers: answers.written },
  async (managedKeys, { warnings, ...call }) => {
    const record = await managedKeys.registry.read(nameIn(call));
    await managedKeys.testSign(record);
    return writtenReply(warnings);
  },
);

/** Routes of managed keys, which are stored in PKCS#11 tokens. */
export const managedKeyRoutes: readonly Route[] = [
  { path: 'sys/managed-keys/pkcs11', operations: { LIST: list } },
  { path: 'sys/managed-keys/pkcs11/:name', operations: { GET: read, POST: write, DELETE: remove } },
  { path: 'sys/managed-keys/pkcs11/:name/test/sign', operations: { POST: testSign } },
];
