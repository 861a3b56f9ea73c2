import { createHash, type webcrypto, X509Certificate } from 'node:crypto';
import '../src/membership/reflect-metadata.ts'; // the library below needs it
import * as x509 from '@peculiar/x509';

const curve = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const signature = { name: 'ECDSA', hash: 'SHA-256' } as const;
const dayMs = 86_400_000;

/** A key with its certificate, both in PEM. Intermediate certificates may follow the certificate. */
export interface TestIdentity {
  readonly cert: string;
  readonly key: string;
}

export interface Certified {
  readonly subject?: string;
  readonly usages?: readonly ('clientAuth' | 'serverAuth')[];
  readonly names?: x509.JsonGeneralNames;
  readonly notBefore?: Date;
  readonly notAfter?: Date;
  readonly extensions?: readonly x509.Extension[];
}

export interface AuthorityOptions extends Pick<Certified, 'notAfter' | 'extensions'> {
  /** Absent: it signs itself. */
  readonly parent?: TestAuthority;
  /** Another spelling of the name of the authority that signs. */
  readonly issuer?: string;
  readonly isAuthority?: boolean;
  readonly keys?: webcrypto.CryptoKeyPair;
}

const newKeys = (): Promise<webcrypto.CryptoKeyPair> => crypto.subtle.generateKey(curve, true, ['sign', 'verify']);

/** A certificate authority, which signs whatever a test needs. */
export class TestAuthority {
  readonly subject: string;
  readonly keys: webcrypto.CryptoKeyPair;
  /** PEM. */
  readonly cert: string;

  private constructor(subject: string, keys: webcrypto.CryptoKeyPair, cert: string) {
    this.subject = subject;
    this.keys = keys;
    this.cert = cert;
  }

  static async make(subject = 'CN=authority', options: AuthorityOptions = {}): Promise<TestAuthority> {
    const {
      parent,
      issuer = parent?.subject ?? subject,
      isAuthority = true,
      notAfter = new Date(Date.now() + dayMs),
      extensions = [],
      keys = await newKeys(),
    } = options;
    const made = await x509.X509CertificateGenerator.create({
      subject,
      issuer,
      notBefore: new Date(Date.now() - 2 * dayMs),
      notAfter,
      signingAlgorithm: signature,
      signingKey: (parent?.keys ?? keys).privateKey,
      publicKey: keys.publicKey,
      extensions: [
        new x509.BasicConstraintsExtension(isAuthority, undefined, true),
        ...(isAuthority ? [new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true)] : []),
        ...extensions,
      ],
    });
    return new TestAuthority(subject, keys, pemOf(made));
  }

  /** Certifies a new key. */
  async certify({
    subject = 'CN=client',
    usages = ['clientAuth'],
    names = [],
    extensions = [],
    ...times
  }: Certified = {}): Promise<TestIdentity> {
    const { publicKey, privateKey } = await newKeys();
    const made = await x509.X509CertificateGenerator.create({
      subject,
      issuer: this.subject,
      notBefore: times.notBefore ?? new Date(Date.now() - 2 * dayMs),
      notAfter: times.notAfter ?? new Date(Date.now() + dayMs),
      signingAlgorithm: signature,
      signingKey: this.keys.privateKey,
      publicKey,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.ExtendedKeyUsageExtension(usages.map((usage) => x509.ExtendedKeyUsage[usage])),
        ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
        await x509.SubjectKeyIdentifierExtension.create(publicKey),
        await x509.AuthorityKeyIdentifierExtension.create(this.keys.publicKey),
        ...extensions,
      ],
    });
    const key = Buffer.from(await crypto.subtle.exportKey('pkcs8', privateKey)).toString('base64');
    return { cert: pemOf(made), key: `-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----\n` };
  }

  /** Returns the revocation list, in PEM. @param revoked - certificates in PEM @param nextUpdate - null for none */
  async revocations(revoked: readonly string[] = [], nextUpdate: Date | null = new Date(Date.now() + dayMs)): Promise<string> {
    const list = await x509.X509CrlGenerator.create({
      issuer: this.subject,
      thisUpdate: new Date(Date.now() - dayMs),
      ...(nextUpdate !== null && { nextUpdate }),
      entries: revoked.map((pem) => ({
        serialNumber: new X509Certificate(pem).serialNumber,
        revocationDate: new Date(Date.now() - dayMs),
      })),
      signingAlgorithm: signature,
      signingKey: this.keys.privateKey,
    });
    return `-----BEGIN X509 CRL-----\n${list.toString('base64')}\n-----END X509 CRL-----\n`;
  }
}

const pemOf = (made: x509.X509Certificate): string => `${made.toString('pem')}\n`;

/** Returns the certificate with others after it, as a client sends them. */
export const withChain = ({ cert, key }: TestIdentity, ...others: readonly TestAuthority[]): TestIdentity => ({
  cert: [cert, ...others.map((each) => each.cert)].join(''),
  key,
});

/** Returns the SHA-256 of a certificate in PEM, in hex. */
export const sha256Of = (pem: string): string => createHash('sha256').update(new X509Certificate(pem).raw).digest('hex');

/** Returns name constraints that permit names of hosts below one domain only. */
export function onlyHostsBelow(domain: string): x509.Extension {
  const tlv = (tag: number, content: Buffer): Buffer => Buffer.concat([Buffer.of(tag, content.length), content]);
  const der = tlv(0x30, tlv(0xa0, tlv(0x30, tlv(0x82, Buffer.from(domain)))));
  return new x509.Extension('2.5.29.30', true, der);
}

/** Returns an extension of this size that means nothing. */
export const padding = (bytes: number): x509.Extension =>
  new x509.Extension('1.3.6.1.4.1.99999.1', false, Buffer.alloc(bytes, 5));
