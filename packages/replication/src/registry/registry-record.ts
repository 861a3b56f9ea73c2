import { CodecError } from '@transitd/raft-core';
import { decodeFields, hasFields, type JsonFields } from '@transitd/storage-fsm';
import { type Activation, type EndReason, endedMax, isSecondaryId, type Registry, secondariesMax } from './registry.ts';

/** Path of the record that stores the registry. The path begins with a local prefix, so the record is not replicated. */
export const registryPath = 'core/replication/registry';

const format = 1;
const issuedCharactersMax = 8 * 1024;
const reasons: readonly unknown[] = ['used', 'expired', 'revoked', 'replaced'] satisfies EndReason[];

/** Encodes the registry as versioned JSON. */
export const encodeRegistry = ({ activations, registrations, ended }: Registry): Buffer =>
  Buffer.from(JSON.stringify({ format, activations, registrations, ended }));

/** Decodes the registry. @throws CodecError for any bytes that {@link encodeRegistry} does not write */
export function decodeRegistry(bytes: Uint8Array): Registry {
  const { format: stored, ...lists } = decodeFields(bytes, 'the record of the secondaries');
  if (stored !== format) throw new CodecError('the record of the secondaries has an unknown format');
  const { activations, registrations, ended } = lists;
  const isWhole =
    isList(activations, secondariesMax, isActivation) &&
    isList(registrations, secondariesMax, isRegistration) &&
    isList(ended, endedMax, isEnded);
  if (!isWhole) throw new CodecError('the record of the secondaries is malformed');
  return { activations, registrations, ended } as unknown as Registry;
}

const isList = (value: unknown, max: number, check: (fields: JsonFields) => boolean): boolean =>
  Array.isArray(value) && value.length <= max && value.every((one) => hasFields(one) && check(one));

const isToken = ({ certificate, expiresMs }: JsonFields | Omit<Activation, 'secondary'>): boolean =>
  isHash(certificate) && Number.isFinite(expiresMs);
const isActivation = (fields: JsonFields): boolean => isId(fields['secondary']) && isToken(fields);
const isRegistration = ({ secondary, cluster, certificate, follows, activation }: JsonFields): boolean =>
  isId(secondary) &&
  isClusterId(cluster) &&
  isHash(certificate) &&
  typeof follows === 'boolean' &&
  (activation === undefined || (hasFields(activation) && isUsed(activation)));
const isUsed = (fields: JsonFields): boolean => {
  const { key, issued } = fields;
  return isToken(fields) && isHash(key) && typeof issued === 'string' && issued.length <= issuedCharactersMax;
};
const isEnded = ({ certificate, why }: JsonFields): boolean => isHash(certificate) && reasons.includes(why);

const isHash = (value: unknown): boolean => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
const isClusterId = (value: unknown): boolean => typeof value === 'string' && value.length > 0 && value.length <= 64;
const isId = (value: unknown): boolean => typeof value === 'string' && isSecondaryId(value);
