import type { SecureContextOptions } from 'node:tls';

/** UTCTime, of the years 1950 to 2049, and GeneralizedTime, of all others (RFC 5280 §5.1.2.4). */
const [utcTime, generalizedTime, integer] = [0x17, 0x18, 0x02];

/**
 * Returns when the first revocation list of a listener expires, in milliseconds since 1970: from then on, no certificate of its authority
 * is accepted. Undefined if there is none that expires.
 */
export function revocationExpiryMs({ crl = [] }: SecureContextOptions): number | undefined {
  const ends = [crl].flat().flatMap((pem) => nextUpdateMs(String(pem)) ?? []);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/**
 * Reads `nextUpdate` of a list that OpenSSL has accepted, but not the certificates after it: the library for ASN.1 refuses lists of many
 * certificates.
 */
function nextUpdateMs(pem: string): number | undefined {
  const der = Buffer.from(pem.replace(/-----[^-]*-----/g, ''), 'base64');
  const elementAt = (at: number) => {
    const first = der[at + 1] ?? 0;
    const digits = first < 0x80 ? 0 : first & 0x7f;
    const contentAt = at + 2 + digits;
    return { tag: der[at], contentAt, end: contentAt + (digits === 0 ? first : der.readUIntBE(at + 2, digits)) };
  };
  let next = elementAt(elementAt(elementAt(0).contentAt).contentAt); // of the fields of `tbsCertList`, the first one
  const skipped = next.tag === integer ? 4 : 3; // the version, which may be absent; signature, issuer, thisUpdate
  for (let field = 0; field < skipped; field++) next = elementAt(next.end);
  const text = der.toString('latin1', next.contentAt, next.end);
  if (next.tag === generalizedTime) return timeMs(text);
  return next.tag === utcTime ? timeMs(`${Number(text.slice(0, 2)) < 50 ? '20' : '19'}${text}`) : undefined;
}

/** @param text - `YYYYMMDDHHMMSSZ` */
const timeMs = (text: string): number =>
  Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
