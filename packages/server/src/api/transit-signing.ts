import { defaultHash, type SignRequest } from '@transitd/transit-engine';
import type { FieldSchema, Fields } from '../http/fields.ts';
import type { JsonValue } from '../http/json.ts';
import { operation } from './transit-operation.ts';

export const hmac = operation({
  name: 'hmac',
  path: { params: ['name', 'urlalgorithm'], required: 1 },
  schema: {
    name: 'string',
    urlalgorithm: 'string',
    algorithm: 'string',
    input: 'string',
    key_version: 'int',
    batch_input: 'any',
  },
  capability: 'update',
  spelledOut: ({ name, urlalgorithm, algorithm }) => [`${name}/${urlalgorithm ?? algorithm ?? defaultHash}`],
  ask: (engine, asked, { keyName }) =>
    engine.signing.hmac(keyName, {
      algorithm: asked.urlalgorithm ?? asked.algorithm,
      input: asked.input,
      keyVersion: asked.key_version,
      batchInput: asked.batch_input,
    }),
  render: (result) => `"hmac":"${result.hmac}","key_version":${result.keyVersion}`,
});

export const cmac = operation({
  name: 'cmac',
  path: { params: ['name', 'url_mac_length'], required: 1 },
  schema: { name: 'string', url_mac_length: 'int', mac_length: 'int', input: 'string', key_version: 'int', batch_input: 'any' },
  capability: 'update',
  spelledOut: ({ name, url_mac_length, mac_length, batch_input }) => {
    const lengths = url_mac_length === undefined ? lengthsIn(batch_input, mac_length ?? 0) : [url_mac_length];
    return lengths
      .flatMap((length) => (length === 0 || length === wholeMacBytes ? [0, wholeMacBytes] : [length]))
      .map((length) => `${name}/${length}`);
  },
  ask: (engine, asked, { keyName }) =>
    engine.signing.cmac(keyName, {
      macLengthForAll: asked.url_mac_length,
      macLength: asked.mac_length,
      input: asked.input,
      keyVersion: asked.key_version,
      batchInput: asked.batch_input,
    }),
  render: (result) => `"cmac":"${result.cmac}","key_version":${result.keyVersion}`,
});

/** How to sign, or how it was signed. */
const settings = {
  name: 'string',
  urlalgorithm: 'string',
  hash_algorithm: 'string',
  algorithm: 'string',
  input: 'string',
  context: 'string',
  signature_context: 'string',
  prehashed: 'bool',
  signature_algorithm: 'string',
  marshaling_algorithm: 'string',
  salt_length: 'string',
  batch_input: 'any',
} as const satisfies FieldSchema;

type Settings = Fields<typeof settings>['values'];

/** The path's, else the body's, else the body's under its older name. */
const hashAsked = ({ urlalgorithm, hash_algorithm, algorithm }: Settings): string =>
  urlalgorithm || hash_algorithm || algorithm || defaultHash;

const spelledOut = (asked: Settings): readonly string[] => [`${asked.name}/${hashAsked(asked)}`];

const requestOf = (asked: Settings): SignRequest => ({
  hashAlgorithm: hashAsked(asked),
  input: asked.input,
  context: asked.context,
  signatureContext: asked.signature_context,
  prehashed: asked.prehashed,
  signatureAlgorithm: asked.signature_algorithm,
  marshalingAlgorithm: asked.marshaling_algorithm,
  saltLength: asked.salt_length,
  batchInput: asked.batch_input,
});

const path = { params: ['name', 'urlalgorithm'], required: 1 } as const;

export const sign = operation({
  name: 'sign',
  path,
  schema: { ...settings, key_version: 'int' },
  capability: 'update',
  spelledOut,
  ask: (engine, asked, { keyName }) => engine.signing.sign(keyName, { ...requestOf(asked), keyVersion: asked.key_version }),
  render: ({ signature, keyVersion, publicKey }, inBatch) => {
    const members = `"signature":"${signature}","key_version":${keyVersion}`;
    return publicKey === undefined
      ? members
      : `${members},"${inBatch ? 'publickey' : 'public_key'}":${JSON.stringify(publicKey)}`;
  },
  failedItem: '"key_version":0,',
});

export const verify = operation({
  name: 'verify',
  path,
  schema: { ...settings, signature: 'string', hmac: 'string', cmac: 'string' },
  capability: 'update',
  spelledOut,
  ask: (engine, asked, { keyName }) =>
    engine.signing.verify(keyName, {
      ...requestOf(asked),
      signature: asked.signature,
      hmac: asked.hmac,
      cmac: asked.cmac,
    }),
  render: ({ valid }) => `"valid":${valid}`,
  failedItem: '"valid":false,',
});

const wholeMacBytes = 16;

/** The lengths that a request for CMACs comes to: its own, and those of its items that have one. */
function lengthsIn(batchInput: JsonValue | undefined, own: number): readonly number[] {
  const lengths = new Set([own]);
  if (Array.isArray(batchInput)) {
    for (const item of batchInput) {
      const length: unknown = typeof item === 'object' && item !== null ? Reflect.get(item, 'mac_length') : undefined;
      if (typeof length === 'number') lengths.add(length);
    }
  }
  return [...lengths];
}
