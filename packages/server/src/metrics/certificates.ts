import { X509Certificate } from 'node:crypto';
import { type MetricTarget, type NodeSource, registerRows } from './register.ts';

/** A certificate that a node shows to those who connect to it. */
export interface ShownCertificate {
  /** Where the node listens. */
  readonly address: string;
  /** PEM. */
  readonly chain: string;
  /** When the first of the revocation lists for the certificates of clients expires, in Unix milliseconds; undefined for none. */
  readonly revocationExpiryMs?: number | undefined;
}

/**
 * Registers the gauges of when certificates and revocation lists expire. They show those in use, which a renewed file does not change.
 * @param listeners - returns the certificates of the listeners for clients
 */
export function registerCertificateMetrics(
  target: MetricTarget,
  node: NodeSource,
  listeners: () => readonly ShownCertificate[],
): void {
  const shown = {
    name: 'certificate_expiry_timestamp_seconds',
    help: 'When the first certificate of the chain that this node shows at an address expires, in seconds since 1970',
    label: 'address',
  };
  registerRows(target, shown, () => {
    const port = node()?.clusterPort;
    const ofCluster = port === undefined ? [] : [{ address: port.address, chain: port.certificate }];
    return [...listeners(), ...ofCluster].map(({ address, chain }) => [address, expiryS(chain)]);
  });
  const revocation = {
    name: 'revocation_list_expiry_timestamp_seconds',
    help: 'When the first revocation list for client certificates at an address expires, in seconds since 1970',
    label: 'address',
  };
  registerRows(target, revocation, () =>
    listeners().map(({ address, revocationExpiryMs: endMs }) => [address, endMs === undefined ? undefined : endMs / 1000]),
  );
  const authority = {
    name: 'authority_expiry_timestamp_seconds',
    help: "When the certificate of the cluster's authority expires, in seconds since 1970",
  };
  registerRows(target, authority, () => {
    const pem = node()?.clusterPort?.authority;
    return [[undefined, pem === undefined ? undefined : expiryS(pem)]];
  });
}

/** The labels are those that OpenSSL reads. */
const pemCertificates = /-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----.*?-----END \1-----/gs;

/** Returns when the first certificate of a chain expires, in seconds since 1970. @param chain - PEM, perhaps with other text in it */
const expiryS = (chain: string): number =>
  Math.min(...(chain.match(pemCertificates) ?? []).map((pem) => new X509Certificate(pem).validToDate.getTime() / 1000));
