import { X509Certificate } from 'node:crypto';
import { type MetricRow, type MetricTarget, registerRows } from './register.ts';

/** The certificates that a node shows to those who connect to it. */
export interface CertificateFigures {
  /** @property address - where the node listens @property chain - PEM */
  readonly shown: readonly { readonly address: string; readonly chain: string }[];
  /** PEM of the authority that certified this node for the other nodes; absent while there is none. */
  readonly authority?: string | undefined;
}

/** Registers the gauges of when certificates expire. They show the certificates in use, which a renewed file does not change. */
export function registerCertificateMetrics({
  certificates,
  ...target
}: MetricTarget & { readonly certificates: () => CertificateFigures }): void {
  const shown = {
    name: 'certificate_expiry_timestamp_seconds',
    help: 'When the first certificate of the chain that this node shows at an address expires, in seconds since 1970',
    label: 'address',
  };
  registerRows(target, shown, () => certificates().shown.map(({ address, chain }): MetricRow => [address, expiryS(chain)]));
  const authority = {
    name: 'authority_expiry_timestamp_seconds',
    help: "When the certificate of the cluster's authority expires, in seconds since 1970",
  };
  registerRows(target, authority, () => {
    const { authority: pem } = certificates();
    return pem === undefined ? [] : [[undefined, expiryS(pem)]];
  });
}

/** The labels are those that OpenSSL reads. */
const pemCertificates = /-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----.*?-----END \1-----/gs;

/** Returns when the first certificate of a chain expires, in seconds since 1970. @param chain - PEM, perhaps with other text in it */
const expiryS = (chain: string): number =>
  Math.min(...(chain.match(pemCertificates) ?? []).map((pem) => new X509Certificate(pem).validToDate.getTime() / 1000));
