import { AsnConvert } from '@peculiar/asn1-schema';
import {
  AuthorityKeyIdentifier,
  Certificate,
  id_ce_authorityKeyIdentifier,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
} from '@peculiar/asn1-x509';

/** Parts of a subject (RFC 5280 appendix A.1). */
const [commonNameId, organizationalUnitId] = ['2.5.4.3', '2.5.4.11'];

/** What a login reads in the certificate of a client. Names are as the certificate has them, without escapes. */
export interface ClientNames {
  /** The most specific common name; empty for none. */
  readonly commonName: string;
  readonly organizationalUnits: readonly string[];
  readonly dns: readonly string[];
  readonly emails: readonly string[];
  readonly uris: readonly string[];
  /** Decimal. */
  readonly serialNumber: string;
  /** Hex bytes, separated by colons; empty for none. */
  readonly subjectKeyId: string;
  readonly authorityKeyId: string;
}

/**
 * Reads a certificate in DER. The text forms of names, as OpenSSL and Node write them, are ambiguous: a name may contain what separates
 * names.
 * @throws Error if a name or an extension is malformed
 */
export function clientNames(der: Buffer): ClientNames {
  const { tbsCertificate } = AsnConvert.parse(der, Certificate);
  const { subject, extensions = [], serialNumber } = tbsCertificate;
  const inSubject = (id: string): readonly string[] =>
    [...subject].flatMap((names) => [...names].flatMap(({ type, value }) => (type === id ? [value.toString()] : [])));
  const extension = (id: string): ArrayBuffer | undefined => {
    const [found, ...more] = extensions.filter(({ extnID }) => extnID === id);
    if (more.length > 0) throw new Error('a certificate has an extension twice');
    return found?.extnValue.buffer;
  };
  const [names, subjectKey, authorityKey] = [id_ce_subjectAltName, id_ce_subjectKeyIdentifier, id_ce_authorityKeyIdentifier].map(
    extension,
  );
  const alternative = names === undefined ? [] : [...AsnConvert.parse(names, SubjectAlternativeName)];
  return {
    commonName: inSubject(commonNameId).at(-1) ?? '',
    organizationalUnits: inSubject(organizationalUnitId),
    dns: alternative.flatMap(({ dNSName }) => dNSName ?? []),
    emails: alternative.flatMap(({ rfc822Name }) => rfc822Name ?? []),
    uris: alternative.flatMap(({ uniformResourceIdentifier }) => uniformResourceIdentifier ?? []),
    serialNumber: BigInt(`0x${Buffer.from(serialNumber).toString('hex')}`).toString(),
    subjectKeyId: subjectKey === undefined ? '' : colons(AsnConvert.parse(subjectKey, SubjectKeyIdentifier).buffer),
    authorityKeyId:
      authorityKey === undefined ? '' : colons(AsnConvert.parse(authorityKey, AuthorityKeyIdentifier).keyIdentifier?.buffer),
  };
}

const colons = (bytes: ArrayBuffer = new ArrayBuffer(0)): string =>
  Buffer.from(bytes)
    .toString('hex')
    .replace(/..(?=.)/g, '$&:');
