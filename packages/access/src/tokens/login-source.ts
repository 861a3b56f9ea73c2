import type { Condition, Store } from '@transitd/storage-fsm';
import { authMountPath, decodeAuthMount, parseMountReference } from '../mounts/auth-mount.ts';
import { decodeJson } from '../values/json-record.ts';
import type { TokenLimits } from './token-lifetime.ts';
import { policyNames } from './token-policies.ts';
import type { TokenRecord } from './token-record.ts';
import { newTokenSettings, type TokenSettings } from './token-settings.ts';

/** The present state of the user or role for which a login made a token. */
interface LoginSource {
  readonly settings: TokenSettings;
  /** Limits of the auth method; 0 means the limit of the node. */
  readonly mount: TokenLimits;
  /** Policies that a login would grant now, without `default`, sorted. */
  readonly policies: readonly string[];
  /** Conditions that hold while the user or role and the auth method are unchanged. */
  readonly conditions: readonly Condition[];
}

/**
 * Reads the user or role of a login's token; undefined when it or the auth method no longer exists.
 * @throws AccessError `record_unreadable`; StoreError
 */
export async function readLoginSource(
  store: Store,
  { source, mount: reference, groups }: TokenRecord,
): Promise<LoginSource | undefined> {
  const mountPath = authMountPath(parseMountReference(reference).path);
  const [stored, mount] = [await store.get(source), await store.get(mountPath)];
  if (stored === undefined || mount === undefined) return undefined;
  // Users and roles of every kind have these fields.
  const { token: settings } = decodeJson(stored.value, { token: newTokenSettings });
  const granted = groups.length === 0 ? {} : decodeJson(stored.value, groupsExample).groupPolicies;
  return {
    settings,
    mount: decodeAuthMount(mount.value),
    policies: withoutDefault(policyNames([...settings.policies, ...policiesOfGroups(granted, groups)])),
    conditions: [
      { path: source, revision: stored.revision },
      { path: mountPath, revision: mount.revision },
    ],
  };
}

/** Returns whether a token has exactly the policies that a login would grant now, ignoring `default`. */
export const hasPoliciesOf = ({ policies }: LoginSource, record: TokenRecord): boolean => {
  const held = withoutDefault(record.policies);
  return held.length === policies.length && held.every((name, index) => name === policies[index]);
};

/** Returns the policies that a role grants to members of these groups. */
export const policiesOfGroups = (
  groupPolicies: Readonly<Record<string, readonly string[]>>,
  groups: readonly string[],
): readonly string[] => groups.flatMap((group) => (Object.hasOwn(groupPolicies, group) ? (groupPolicies[group] ?? []) : []));

const groupsExample: { readonly groupPolicies: Readonly<Record<string, readonly string[]>> } = { groupPolicies: {} };

const withoutDefault = (policies: readonly string[]): readonly string[] => policies.filter((name) => name !== 'default').sort();
