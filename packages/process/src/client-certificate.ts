/** A client certificate that OpenSSL verified in the handshake of a listener. */
export interface ClientCertificate {
  /** SHA-256 of the certificate, in hex. */
  readonly sha256: string;
  /** End of its validity, in milliseconds since the epoch. */
  readonly expiresMs: number;
  /** The certificate in DER. */
  readonly der: Buffer;
  /**
   * Chains that OpenSSL may have verified, as far as they are known, each from the client's certificate towards a root, as SHA-256 in hex.
   * The certificates of one of them are in the verified chain, and nothing tells which one.
   */
  readonly chains: readonly (readonly string[])[];
}

/** Longest certificate of a client in DER, in bytes. */
export const clientCertificateBytesMax = 8 * 1024;
/** Maximum number of certificates in a chain, and of chains. */
export const [clientChainMax, clientChainsMax] = [10, 4];

/** Length of the longest text of a certificate, with room to spare, in characters. */
export const clientCertificateTextMax = 16 * 1024;

/** Returns a certificate as the text in which threads and nodes pass it to each other: no spaces, at most 16 KiB. */
export const clientCertificateText = ({ expiresMs, der, chains }: ClientCertificate): string =>
  [expiresMs, der.toString('base64url'), ...chains.map((chain) => chain.join(','))].join('.');

/** Returns the certificate in a text of another thread or node; undefined for none. */
export function clientCertificateIn(text: string): ClientCertificate | undefined {
  const [end = '', der = '', ...written] = text.split('.');
  const expiresMs = Number(end);
  const chains = written.map((chain) => chain.split(','));
  const sha256 = chains[0]?.[0] ?? '';
  if (sha256 === '' || !Number.isSafeInteger(expiresMs)) return undefined;
  return { sha256, expiresMs, der: Buffer.from(der, 'base64url'), chains };
}

/** Returns whether the certificate is the one with this SHA-256, and is still valid. */
export const isCertificate = (sha256: string, certificate: ClientCertificate | undefined, nowMs: number): boolean =>
  certificate !== undefined && certificate.sha256 === sha256 && certificate.expiresMs > nowMs;
