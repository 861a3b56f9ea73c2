import type { Duplex } from 'node:stream';
import type { ClientCertificate } from '@transitd/process';

const certificates = new WeakMap<Duplex, ClientCertificate>();

/** Notes the verified certificate of the client on a connection. @param certificate - undefined for none */
export function noteClientCertificate(connection: Duplex, certificate: ClientCertificate | undefined): void {
  if (certificate === undefined) certificates.delete(connection);
  else certificates.set(connection, certificate);
}

/** Returns the verified certificate of the client on a connection; undefined for none. */
export const clientCertificateOf = (connection: Duplex): ClientCertificate | undefined => certificates.get(connection);
