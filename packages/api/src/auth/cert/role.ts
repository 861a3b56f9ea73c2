import { newTokenSettings, type RoleChange, type TokenSettings } from '@transitd/access';
import { bool, type FieldSchema, text, texts } from '@transitd/http';
import { newRecord, type RecordOf } from '../../operation/kept-fields.ts';

/** The certificate needs one name that matches. */
const allowed = (names: string) => texts(`Accepted ${names}; each \`*\` matches any text. Empty for any`, { limits: true });

/** Fields of a role itself; the settings of its tokens are `tokenFields`. */
export const ownFields = {
  certificate: text('Certificates in PEM, one of which must be in the verified chain of the client: its own, or of an authority'),
  display_name: text('Name in the display names of tokens; empty for the name of the role'),
  allowed_names: allowed('common names, DNS names and email addresses'),
  allowed_common_names: allowed('common names'),
  allowed_dns_sans: allowed('DNS names'),
  allowed_email_sans: allowed('email addresses'),
  allowed_uri_sans: allowed('URIs, such as SPIFFE IDs'),
  allowed_organizational_units: allowed('organizational units'),
  token_bound_certificate: bool('Tokens are used and renewed only on connections with the certificate of their login', {
    initial: false,
  }),
} as const satisfies FieldSchema;

export interface CertRole extends RecordOf<typeof ownFields> {
  /** SHA-256 of the certificates, in hex. */
  readonly certificates: readonly string[];
  readonly token: TokenSettings;
}

export type CertRoleChange = RoleChange<Omit<CertRole, 'certificates'>>;

export const newRole: CertRole = { ...newRecord(ownFields), certificates: [], token: newTokenSettings };
