import { hash, X509Certificate } from 'node:crypto';
import type { Server } from 'node:https';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { noteClientCertificate } from '@transitd/http';
import { type ClientCertificate, clientCertificateBytesMax, clientChainMax, clientChainsMax } from '@transitd/process';

/** A certificate counts as valid for so long after its end, so that it is still part of a chain that OpenSSL verified a moment ago. */
const validMs = 60_000;

/** Maximum number of beginnings of chains that are followed: authorities that sign each other have more of them than can be counted. */
const beginningsMax = 100;

/** What verifies the certificates of a server's new handshakes. */
interface Verifiers {
  /** SHA-256 of the authorities and revocation lists. */
  readonly sha256: string;
  readonly authorities: readonly X509Certificate[];
}

const verifiers = new WeakMap<Server, Verifiers>();

/** Notes what verifies new handshakes. Returns whether it differs from before. @param context - what the server was given */
export function useVerifiers(server: Server, { ca = [], crl }: SecureContextOptions): boolean {
  const [before, sha256] = [verifiers.get(server), hash('sha256', JSON.stringify([ca, crl]))];
  verifiers.set(server, { sha256, authorities: [ca].flat().map((pem) => new X509Certificate(pem)) });
  return before?.sha256 !== sha256;
}

/** Notes the verified certificate of each connection of a server, before its first request is parsed. */
export function noteClientCertificates(server: Server): void {
  server.prependListener('secureConnection', (socket: TLSSocket) =>
    noteClientCertificate(socket, verifiedCertificate(socket, verifiers.get(server)?.authorities ?? [])),
  );
}

/**
 * Returns the certificate of a connection if OpenSSL has verified it in this handshake: chain, times, name constraints, purpose and
 * revocation. Any other certificate is as good as none.
 */
function verifiedCertificate(socket: TLSSocket, known: readonly X509Certificate[]): ClientCertificate | undefined {
  const leaf = socket.authorized && !socket.isSessionReused() ? socket.getPeerX509Certificate() : undefined;
  if (leaf === undefined || leaf.raw.length > clientCertificateBytesMax) return undefined;
  const chains = chainsOf(leaf, known).map((chain) => chain.map(sha256Of));
  return { sha256: sha256Of(leaf), expiresMs: leaf.validToDate.getTime(), der: leaf.raw, chains };
}

/**
 * Returns the chains that OpenSSL may have verified, as far as they are known: one of them is part of its own. Node does not tell which
 * certificates a client sent (nodejs/node#65579), and OpenSSL uses them only while no authority of the listener has the name of the issuer.
 * So if an authority has signed the leaf, all issuers are authorities; otherwise only the leaf and the end of the chain, a root, are known.
 */
export function chainsOf(leaf: X509Certificate, authorities: readonly X509Certificate[]): readonly Chain[] {
  const known = authorities.filter(({ validToDate }) => validToDate.getTime() > Date.now() - validMs);
  const whole: Chain[] = [];
  let begun = 0;
  for (const { chain, isWhole } of beginningsFrom([leaf], leaf, known)) {
    begun += 1;
    if (isWhole) whole.push(chain);
    if (begun > beginningsMax || chain.length > clientChainMax || whole.length > clientChainsMax) return [[leaf]];
  }
  if (whole.length > 0) return whole;
  const roots = begun === 1 ? known.filter(isRoot) : [];
  return roots.length === 0 || roots.length > clientChainsMax ? [[leaf]] : roots.map((root) => [leaf, root]);
}

type Chain = readonly X509Certificate[];

/** Yields this chain and every longer one that begins with it, up to a root, each certificate signed by the next one. */
function* beginningsFrom(
  chain: Chain,
  last: X509Certificate,
  authorities: Chain,
): Generator<{ readonly chain: Chain; readonly isWhole: boolean }> {
  const isWhole = isRoot(last) && authorities.some(({ fingerprint256 }) => fingerprint256 === last.fingerprint256);
  yield { chain, isWhole };
  if (isWhole) return;
  for (const issuer of authorities)
    if (!chain.includes(issuer) && hasSigned(issuer, last)) yield* beginningsFrom([...chain, issuer], issuer, authorities);
}

/** OpenSSL too recognizes roots by their names, and compares them without regard to letter case and encoding. */
const isRoot = (certificate: X509Certificate): boolean =>
  certificate.subject === certificate.issuer || certificate.checkIssued(certificate);

function hasSigned(issuer: X509Certificate, certificate: X509Certificate): boolean {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  } catch {
    return false; // OpenSSL does not support its key
  }
}

const sha256Of = ({ fingerprint256 }: X509Certificate): string => fingerprint256.replaceAll(':', '').toLowerCase();
