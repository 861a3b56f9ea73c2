import { checkCidrs, invalidRequest, newTokenSettings, type RoleChange, type TokenSettings } from '@transitd/access';
import { bool, duration, type FieldSchema, int } from '@transitd/http';
import { newRecord, type RecordOf } from '../../operation/kept-fields.ts';
import { cidrs } from '../../operation/spellings.ts';

/** Maximum length of a role id, and of a secret id, in characters. */
export const idCharsMax = 4096;

/** Fields of a role itself; `token_policies` and the other settings of its tokens are `tokenFields`. */
export const ownFields = {
  bind_secret_id: bool('Require a secret ID at login', { default: true }),
  secret_id_bound_cidrs: cidrs('CIDR blocks from which secret IDs may be used'),
  bound_cidr_list: cidrs('Alias of `secret_id_bound_cidrs`', { aliasOf: 'secret_id_bound_cidrs' }),
  secret_id_num_uses: int('Maximum number of uses of a secret ID; 0 for no limit', { min: 0 }),
  secret_id_ttl: duration('TTL of a secret ID; 0 for no expiry'),
} as const satisfies FieldSchema;

export interface AppRole extends RecordOf<typeof ownFields> {
  /**
   * Random. Secret ids refer to this key: a role that is created again under the same name gets another key and none of the old
   * secret ids.
   */
  readonly key: string;
  readonly roleId: string;
  readonly token: TokenSettings;
}

export type AppRoleChange = RoleChange<Omit<AppRole, 'key'>>;

export const newRole: AppRole = { key: '', roleId: '', ...newRecord(ownFields), token: newTokenSettings };

/** @throws AccessError `invalid_request` */
export function checkRole(role: AppRole): void {
  checkCidrs('secret_id_bound_cidrs', role.secretIdBoundCidrs);
  if (role.roleId === '' || role.roleId.length > idCharsMax)
    throw invalidRequest(`a role id must have 1 to ${idCharsMax} characters`);
  if (role.secretIdNumUses < 0) throw invalidRequest("'secret_id_num_uses' cannot be negative");
  if (!role.bindSecretId && role.secretIdBoundCidrs.length === 0 && role.token.boundCidrs.length === 0)
    throw invalidRequest('at least one constraint should be enabled on the role: a secret id, or bound CIDRs');
}
