import { bool, constant, type FieldSchema, int, object, string, text, texts } from '@transitd/http';
import { type ManagedKeyRecord, pkcs11Mechanisms } from '@transitd/transit-engine';
import * as answers from '../operation/answers.ts';
import { memberSchemas, membersIn, propertiesIn } from '../operation/kept-fields.ts';
import { type Context, guarded, type Route } from '../operation/operation.ts';
import { recordOperations, recordRoutes } from '../operation/records.ts';
import { keyIdSpellings, mechanismSpellings } from '../operation/spellings.ts';

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

const { pin: _, ...shownFields } = keyFields;
const { slot, token_label, key_label, key_id, key_bits, curve, ...always } = memberSchemas(shownFields);
const shownSchema = object(
  { id: string, name: string, type: constant('pkcs11'), ...always },
  { slot, token_label, key_label, key_id, key_bits, curve },
);

/** Returns a managed key as JSON without the PIN, which is write-only. */
const managedKeyJson = (record: ManagedKeyRecord) => ({
  ...{ id: record.id, name: record.name, type: 'pkcs11' },
  ...membersIn(shownFields, { ...record, slot: record.slot === undefined ? undefined : String(record.slot) }),
});

const keys = recordOperations<Context, typeof keyFields>({
  noun: 'managed key',
  name: 'Name of the managed key',
  takes: keyFields,
  shown: shownSchema,
  find: async ({ services }, name) => managedKeyJson(await services.managedKeys.registry.read(name)),
  list: ({ services }) => services.managedKeys.registry.list(),
  write: ({ services }, name, values) => services.managedKeys.registry.write(name, propertiesIn(keyFields, values)),
  delete: ({ services }, name) => services.managedKeys.registry.delete(name),
});

/** Signs random data, so that the caller cannot choose the signed data. Generates a missing key first, if the record allows it. */
const testSign = guarded({
  name: 'managed-keys-test-sign',
  capability: 'update',
  about: 'Test a managed key by signing random data',
  takes: keys.read.takes,
  answers: answers.written,
  run: async ({ services: { managedKeys } }, { values }) => {
    await managedKeys.testSign(await managedKeys.registry.read(values.name));
  },
});

/** Routes of managed keys, which are stored in PKCS#11 tokens. */
export const managedKeyRoutes: readonly Route[] = [
  ...recordRoutes('sys/managed-keys/pkcs11', 'managed-keys', {
    ...keys,
    list: { ...keys.list, about: 'List the names of managed keys' },
    write: { ...keys.write, about: 'Create or replace a managed key' },
    remove: { ...keys.remove, about: 'Delete a managed key; the key in the PKCS#11 token is kept' },
  }),
  { path: 'sys/managed-keys/pkcs11/:name/test/sign', operations: { POST: testSign } },
];
