import { boolean, integer, list, map, object, orNull, string } from '@transitd/http';
import { accessorOf, type Mount } from '@transitd/node';
import { inertMembers, inertOfMount } from '../operation/inert-fields.ts';

/** The settings of a mount or an auth method that both show. */
type Shown = Pick<Mount, 'id' | 'description' | 'externalEntropyAccess' | 'local' | 'options' | 'sealWrap'> & {
  readonly type: string;
};

/** Returns a mount or an auth method in the form of the list. */
export const entryJson = (mount: Shown, { accessor, config }: { readonly accessor: string; readonly config: object }) => ({
  accessor,
  config,
  description: mount.description,
  external_entropy_access: mount.externalEntropyAccess,
  local: mount.local,
  options: optionsJson(mount),
  seal_wrap: mount.sealWrap,
  type: mount.type,
  uuid: mount.id,
});

export const mountJson = (mount: Mount): object => entryJson(mount, { accessor: accessorOf(mount), config: configJson(mount) });

/** Returns the settings of a mount; durations in seconds. */
export const configJson = ({
  allowedManagedKeys,
  ciphertextPrefix,
  defaultTtlS,
  inert,
  maxTtlS,
}: Pick<Mount, 'allowedManagedKeys' | 'ciphertextPrefix' | 'defaultTtlS' | 'inert' | 'maxTtlS'>): object => ({
  ...(allowedManagedKeys.length > 0 && { allowed_managed_keys: allowedManagedKeys }),
  ciphertext_prefix: ciphertextPrefix,
  default_lease_ttl: defaultTtlS,
  force_no_cache: false,
  max_lease_ttl: maxTtlS,
  ...inert,
});

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

/** Schema of `mountJson` and of the entry `sys/`. */
export const mountMembers = {
  accessor: string,
  config: object(configMembers, ownConfigMembers),
  description: string,
  external_entropy_access: boolean,
  local: boolean,
  options: optionsSchema,
  seal_wrap: boolean,
  type: string,
  uuid: string,
};
