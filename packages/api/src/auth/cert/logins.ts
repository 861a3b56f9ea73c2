import type { X509Certificate } from 'node:crypto';
import {
  changedRole,
  displayNameOf,
  type Issued,
  invalidRequest,
  type Login,
  LoginRecords,
  loginName,
  type MethodServices,
  type OpenedMethod,
  refusedBy,
  type Stored,
  type StoredMount,
  starsMatch,
  type TokenRegistry,
} from '@transitd/access';
import { accessTurns, TimeSlice } from '@transitd/event-loop';
import { type ClientCertificate, certificatesIn, type RecordClock, withinCidrs } from '@transitd/process';
import type { RefusedBy } from '@transitd/storage-fsm';
import type { ClientNames } from './client-names.ts';
import { type CertRole, type CertRoleChange, newRole } from './role.ts';

/** Maximum number of certificates of a role. */
const certificatesMax = 16;

/** A role, by its name. */
interface NamedRole extends Stored<CertRole> {
  readonly name: string;
}

/** Logins by the certificate of the client, which OpenSSL has verified in the TLS handshake. */
export class CertLogins implements OpenedMethod {
  readonly roles: LoginRecords<CertRole>;
  readonly #registry: TokenRegistry;
  readonly #clock: RecordClock;

  constructor({ store, registry, clock }: MethodServices) {
    this.roles = new LoginRecords({ store, kind: 'cert', example: newRole });
    this.#registry = registry;
    this.#clock = clock;
  }

  /** Creates a role or changes the given fields. @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError */
  async write(mount: StoredMount, name: string, change: CertRoleChange): Promise<void> {
    await this.roles.change(mount, name, (present = newRole) => {
      const role: CertRole = changedRole(present, change);
      return { value: { ...role, certificates: sha256In(role.certificate) } };
    });
  }

  /**
   * Finds the role of a login: the named one, or the first in the order of their names that the certificate matches.
   * @param name - empty for any role
   * @throws AccessError `invalid_request`, `record_unreadable`; StoreError
   */
  async roleOf({ mount, certificate, address }: Login, name: string): Promise<NamedRole> {
    const shown = this.#verified(certificate);
    const names = await readNames(shown);
    let refused: RefusedBy | undefined;
    const slice = new TimeSlice(accessTurns);
    for (const each of name === '' ? await this.roles.list(mount.id) : [loginName(name)]) {
      if (slice.isOver) await slice.next();
      const role = await this.roles.find(mount.id, each);
      if (role === undefined || !isInEveryChain(role.value.certificates, shown)) continue;
      refused = violated(role.value, names, address);
      if (refused === undefined) return { ...role, name: each };
    }
    if (refused === undefined)
      throw invalidRequest('invalid certificate or no client certificate supplied', refusedBy('certificate'));
    throw invalidRequest('failed to match all constraints for this login certificate', refused);
  }

  /** Logs in. @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError */
  async login(request: Login, roleName: string): Promise<Issued> {
    const { mount, path } = request;
    const { name, value: role, condition } = await this.roleOf(request, roleName);
    const shown = this.#verified(request.certificate);
    const { commonName, serialNumber, subjectKeyId, authorityKeyId } = await readNames(shown);
    return this.#registry.issueOnce({
      mount,
      settings: role.token,
      displayName: `${displayNameOf(mount)}-${role.displayName === '' ? name : role.displayName}`,
      meta: {
        authority_key_id: authorityKeyId,
        cert_name: name,
        common_name: commonName,
        serial_number: serialNumber,
        subject_key_id: subjectKeyId,
      },
      path,
      source: condition,
      ...(role.tokenBoundCertificate && { boundCertificate: shown.sha256 }),
    });
  }

  close(): void {
    // It holds nothing in memory.
  }

  /** A connection may outlive its certificate. @throws AccessError `invalid_request` */
  #verified(certificate: ClientCertificate | undefined): ClientCertificate {
    if (certificate === undefined) throw invalidRequest('client certificate must be supplied', refusedBy('client_certificate'));
    if (certificate.expiresMs <= this.#clock.utcMs())
      throw invalidRequest('invalid certificate: it has expired', refusedBy('client_certificate'));
    return certificate;
  }
}

/** @throws AccessError `invalid_request` */
function sha256In(pem: string): readonly string[] {
  const certificates = readCertificates(pem);
  if (certificates.length > certificatesMax) throw invalidRequest(`certificate holds more than ${certificatesMax} certificates`);
  if (!certificates.every(isForClients))
    throw invalidRequest('nonCA certificates should have TLS client authentication set as an extended key usage');
  return certificates.map(({ fingerprint256 }) => fingerprint256.replaceAll(':', '').toLowerCase());
}

/** @throws AccessError `invalid_request` */
function readCertificates(pem: string): readonly X509Certificate[] {
  try {
    return certificatesIn(pem);
  } catch {
    throw invalidRequest('failed to parse certificate');
  }
}

/** The purposes `clientAuth` and any purpose (RFC 5280 §4.2.1.12). */
const clientPurposes = ['1.3.6.1.5.5.7.3.2', '2.5.29.37.0'];

/** Returns whether a certificate is one of an authority, or one that a client may use. */
const isForClients = ({ ca, keyUsage }: X509Certificate): boolean =>
  ca || keyUsage === undefined || keyUsage.some((purpose) => clientPurposes.includes(purpose));

/** OpenSSL has verified one of the chains, and any of them may be it. */
const isInEveryChain = (certificates: readonly string[], { chains }: ClientCertificate): boolean =>
  chains.every((chain) => chain.some((each) => certificates.includes(each)));

/** The names in each certificate: reading them takes a tenth of the time of a login, which needs them several times. */
const readBefore = new WeakMap<ClientCertificate, ClientNames>();

/** The first call loads the library. @throws AccessError `invalid_request` */
async function readNames(certificate: ClientCertificate): Promise<ClientNames> {
  const known = readBefore.get(certificate);
  if (known !== undefined) return known;
  const { clientNames } = await import('./client-names.ts');
  try {
    const names = clientNames(certificate.der);
    readBefore.set(certificate, names);
    return names;
  } catch {
    throw invalidRequest('invalid certificate: its names cannot be read');
  }
}

/** Returns the first setting of a role that refuses a login; undefined if none does. */
function violated(role: CertRole, { commonName, organizationalUnits, dns, emails, uris }: ClientNames, address: string) {
  const compared = [
    ['allowed_names', role.allowedNames, [commonName, ...dns, ...emails]],
    ['allowed_common_names', role.allowedCommonNames, [commonName]],
    ['allowed_dns_sans', role.allowedDnsSans, dns],
    ['allowed_email_sans', role.allowedEmailSans, emails],
    ['allowed_uri_sans', role.allowedUriSans, uris],
    ['allowed_organizational_units', role.allowedOrganizationalUnits, organizationalUnits],
  ] as const;
  const failed = compared.find(([, patterns, names]) => !matches(patterns, names));
  if (failed !== undefined) return refusedBy(failed[0], failed[2]);
  return withinCidrs(role.token.boundCidrs, address) ? undefined : refusedBy('token_bound_cidrs');
}

const matches = (patterns: readonly string[], names: readonly string[]): boolean =>
  patterns.length === 0 || patterns.some((pattern) => names.some((name) => starsMatch(pattern, name)));
