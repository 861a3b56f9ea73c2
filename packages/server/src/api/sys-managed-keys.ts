import { type ManagedKeyRecord, TransitError } from '@transitd/transit-engine';
import { dataReply, noContent, writtenReply } from '../http/envelope.ts';
import { fields } from '../http/fields.ts';
import type { Reply } from '../http/reply.ts';
import { textList } from '../http/text-list.ts';
import type { TokenManagedKeys } from '../node/managed-keys.ts';
import type { Call, GuardedOperation, Route } from './operation.ts';

function operation(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  run: (managedKeys: TokenManagedKeys, call: Call) => Promise<Reply>,
): GuardedOperation {
  return {
    name,
    access: 'token',
    capability,
    run: ({ service }, call) => run(service.managedKeys, call),
  };
}

const nameIn = ({ params }: Call): string => params['name'] ?? '';

const write = operation('managed-keys-write', 'update', async ({ registry }, call) => {
  const { values, warnings } = fields(
    {
      name: 'string',
      library: 'string',
      slot: 'string',
      token_label: 'string',
      pin: 'string',
      key_label: 'string',
      key_id: 'string',
      mechanism: 'string',
      key_bits: 'int',
      curve: 'string',
      allow_generate_key: 'bool',
      any_mount: 'bool',
      usages: 'any',
    },
    call.body,
    call.params,
  );
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
    usages: textList('usages', values.usages),
  });
  return writtenReply(warnings);
});

const read = operation('managed-keys-read', 'read', async ({ registry }, call) =>
  dataReply(JSON.stringify(shown(await registry.read(nameIn(call))))),
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

const list = operation('managed-keys-list', 'list', async ({ registry }) => {
  const keys = await registry.list();
  if (keys.length === 0) throw new TransitError('not_found', 'no managed keys');
  return dataReply(JSON.stringify({ keys }));
});

const remove = operation('managed-keys-delete', 'delete', async ({ registry }, call) => {
  await registry.delete(nameIn(call));
  return noContent;
});

/** Signs something random, so that nobody gets a signature of his own choice; makes the key first if it is missing and may be made. */
const testSign = operation('managed-keys-test-sign', 'update', async (managedKeys, call) => {
  const { warnings } = fields({ name: 'string' }, call.body, call.params);
  const record = await managedKeys.registry.read(nameIn(call));
  await managedKeys.testSign(record);
  return writtenReply(warnings);
});

/** Keys in PKCS#11 tokens: what they are called and where they lie. */
export const managedKeyRoutes: readonly Route[] = [
  { path: 'sys/managed-keys/pkcs11', operations: { LIST: list } },
  { path: 'sys/managed-keys/pkcs11/:name', operations: { GET: read, POST: write, DELETE: remove } },
  { path: 'sys/managed-keys/pkcs11/:name/test/sign', operations: { POST: testSign } },
];
