import { checkCidrs, invalidRequest, newTokenSettings, type TokenSettings, type TokenSettingsChange } from '@transitd/access';

/** Maximum length of a role id, and of a secret id, in characters. */
export const idCharsMax = 4096;

export interface AppRole {
  /**
   * Random. Secret ids refer to this key: a role that is created again under the same name gets another key and none of the old
   * secret ids.
   */
  readonly key: string;
  readonly roleId: string;
  readonly bindSecretId: boolean;
  readonly secretIdBoundCidrs: readonly string[];
  /** Maximum number of logins with one secret id; 0 for no limit. */
  readonly secretIdNumUses: number;
  /** Lifetime of a secret id in seconds; 0 for no expiry. */
  readonly secretIdTtlS: number;
  readonly token: TokenSettings;
}

export type AppRoleChange = { readonly [Name in keyof Omit<AppRole, 'key' | 'token'>]?: AppRole[Name] | undefined } & {
  readonly token: TokenSettingsChange;
};

export const roleExample: AppRole = {
  key: '',
  roleId: '',
  bindSecretId: true,
  secretIdBoundCidrs: [],
  secretIdNumUses: 0,
  secretIdTtlS: 0,
  token: newTokenSettings,
};

/** @throws AccessError `invalid_request` */
export function checkRole(role: AppRole): void {
  checkCidrs('secret_id_bound_cidrs', role.secretIdBoundCidrs);
  if (role.roleId === '' || role.roleId.length > idCharsMax)
    throw invalidRequest(`a role id must have 1 to ${idCharsMax} characters`);
  if (role.secretIdNumUses < 0) throw invalidRequest("'secret_id_num_uses' cannot be negative");
  if (!role.bindSecretId && role.secretIdBoundCidrs.length === 0 && role.token.boundCidrs.length === 0)
    throw invalidRequest('at least one constraint should be enabled on the role: a secret id, or bound CIDRs');
}
