import type { Condition, Store } from '@transitd/storage-fsm';
import { decodeJson } from '../json-record.ts';
import { authMountPath, decodeAuthMount, parseMountReference } from '../mounts/auth-mount.ts';
import type { TokenLimits } from './token-lifetime.ts';
import { policyNames } from './token-policies.ts';
import type { TokenRecord } from './token-record.ts';
import { newTokenSettings, type TokenSettings } from './token-settings.ts';

/** The user or role that a login's token was given for, as it is now. */
export interface LoginSource {
  readonly settings: TokenSettings;
  /** Of the login method; 0 leaves a time to the node. */
  readonly mount: TokenLimits;
  /** Policies that a login by it would give now, without `default`; sorted. */
  readonly policies: readonly string[];
  /** Hold while neither the user or role nor the login method has changed. */
  readonly conditions: readonly Condition[];
}

/**
 * Reads what a login's token rests on; undefined when the user, the role or the login method has gone.
 * @throws AccessError `record_unreadable`; StoreError
 */
export async function readLoginSource(
  store: Store,
  { source, mount: reference, groups }: TokenRecord,
): Promise<LoginSource | undefined> {
  const mountPath = authMountPath(parseMountReference(reference).path);
  const [stored, mount] = [await store.get(source), await store.get(mountPath)];
  if (stored === undefined || mount === undefined) return undefined;
  // Users and roles of every kind have these members.
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

/** Whether a token still has the policies that a login would give; `default`, which may be given beside them, does not count. */
export const hasPoliciesOf = ({ policies }: LoginSource, record: TokenRecord): boolean => {
  const held = withoutDefault(record.policies);
  return held.length === policies.length && held.every((name, index) => name === policies[index]);
};

/** Policies that a role gives to members of these groups. */
export const policiesOfGroups = (
  groupPolicies: Readonly<Record<string, readonly string[]>>,
  groups: readonly string[],
): readonly string[] => groups.flatMap((group) => (Object.hasOwn(groupPolicies, group) ? (groupPolicies[group] ?? []) : []));

const groupsExample: { readonly groupPolicies: Readonly<Record<string, readonly string[]>> } = { groupPolicies: {} };

const withoutDefault = (policies: readonly string[]): readonly string[] => policies.filter((name) => name !== 'default').sort();
