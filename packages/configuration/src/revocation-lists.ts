import type { SecureContextOptions } from 'node:tls';

/** How long before the first list expires a node warns of it, in milliseconds: many are made for a day only. */
export const revocationWarnedMs = 6 * 3_600_000;

/** UTCTime, of the years 1950 to 2049, and GeneralizedTime, of all others (RFC 5280 §5.1.2.4). */
const [utcTime, generalizedTime, integer] = [0x17, 0x18, 0x02];

/**
 * Returns when the first revocation list of a listener expires, in milliseconds since 1970: from then on, no certificate of its authority
 * is accepted. Undefined if there is none that expires, or whose expiry can be read.
 */
export function revocationExpiryMs({ crl = [] }: SecureContextOptions): number | undefined {
  const ends = [crl].flat().flatMap((pem) => nextUpdateMs(String(pem)) ?? []);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/**
 * Reads `nextUpdate` of a list that OpenSSL has accepted, but not the certificates after it: the library for ASN.1 refuses lists of many
 * certificates. OpenSSL also accepts forms that DER and RFC 5280 forbid: nothing is said of a list in one of them.
 */
function nextUpdateMs(pem: string): number | undefined {
  const der = Buffer.from(pem.replace(/-----[^-]*-----/g, ''), 'base64');
  try {
    return timeMs(nextUpdateOf(der));
  } catch {
    return undefined;
  }
}

/** Returns `nextUpdate` with four digits for the year; undefined if the list has none. @throws RangeError if the list is not DER */
function nextUpdateOf(der: Buffer): string | undefined {
  const elementAt = (at: number) => {
    const first = der.readUInt8(at + 1);
    const digits = first < 0x80 ? 0 : first & 0x7f;
    const contentAt = at + 2 + digits;
    return { tag: der[at], contentAt, end: contentAt + (first < 0x80 ? first : der.readUIntBE(at + 2, digits)) };
  };
  let next = elementAt(elementAt(elementAt(0).contentAt).contentAt); // of the fields of `tbsCertList`, the first one
  const skipped = next.tag === integer ? 4 : 3; // the version, which may be absent; signature, issuer, thisUpdate
  for (let field = 0; field < skipped; field++) next = elementAt(next.end);
  const text = der.toString('latin1', next.contentAt, next.end);
  if (next.tag === generalizedTime) return text;
  return next.tag === utcTime ? `${Number(text.slice(0, 2)) < 50 ? '20' : '19'}${text}` : undefined;
}

/** @param text - `YYYYMMDDHHMMSSZ`; undefined is returned for any other */
function timeMs(text = ''): number | undefined {
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/;
  const ms = parts.test(text) ? Date.parse(text.replace(parts, '$1-$2-$3T$4:$5:$6Z')) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}
