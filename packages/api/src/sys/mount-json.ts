import { boolean, integer, type JsonSchema, list, map, object, orNull, string, text, textMap } from '@transitd/http';
import type { Mount } from '@transitd/node';
import { inertMembers, inertOfMount } from '../operation/inert-fields.ts';
import { shown } from '../operation/shown.ts';

/**
 * The TTLs of a mount or an auth method.
 * @param kind - differs between the operations @param about - descriptions of the default and of the maximum
 */
export const ttlFields = <Kind extends 'duration' | 'lease'>(kind: Kind, ...about: readonly [string, string]) => ({
  default_lease_ttl: { kind, about: about[0], property: 'defaultTtlS' } as const,
  max_lease_ttl: { kind, about: about[1], property: 'maxTtlS' } as const,
});

/** Stored settings of both, besides those of their configuration. */
export const storedFields = {
  description: text('Description for operators'),
  options: textMap('Stored and returned, but has no effect'),
};

/** Returns the effective settings: for a TTL that is not set, the default of the node. */
export const inForce = <M extends Ttls>(mount: M, { defaultTtlS, maxTtlS }: Ttls): M => ({
  ...mount,
  defaultTtlS: mount.defaultTtlS || defaultTtlS,
  maxTtlS: mount.maxTtlS || maxTtlS,
});

type Ttls = Pick<Mount, 'defaultTtlS' | 'maxTtlS'>;

export const optionsJson = ({ options }: Pick<Mount, 'options'>): object | null =>
  Object.keys(options).length === 0 ? null : options;

export const optionsSchema = orNull(map(string));

export const configMembers = { default_lease_ttl: integer, force_no_cache: boolean, max_lease_ttl: integer };
/** Settings that not every mount shows. */
export const ownConfigMembers = {
  ...inertMembers(inertOfMount),
  ciphertext_prefix: string,
  allowed_managed_keys: list(string),
};

/** A mount or an auth method in the form of the list. */
interface Entry extends Pick<Mount, 'id' | 'description' | 'externalEntropyAccess' | 'local' | 'options' | 'sealWrap'> {
  readonly type: string;
  readonly accessor: string;
  readonly config: object;
}

export const shownEntry = shown<Entry>({
  accessor: [string, ({ accessor }) => accessor],
  config: [object(configMembers, ownConfigMembers), ({ config }) => config],
  description: [string, ({ description }) => description],
  external_entropy_access: [boolean, ({ externalEntropyAccess }) => externalEntropyAccess],
  local: [boolean, ({ local }) => local],
  options: [optionsSchema, optionsJson],
  seal_wrap: [boolean, ({ sealWrap }) => sealWrap],
  type: [string, ({ type }) => type],
  uuid: [string, ({ id }) => id],
});

/** Returns the schema of an entry with another configuration. */
export const entrySchema = (config: JsonSchema, more: Readonly<Record<string, JsonSchema>> = {}): JsonSchema =>
  object({ ...shownEntry.schema.properties, config, ...more });
