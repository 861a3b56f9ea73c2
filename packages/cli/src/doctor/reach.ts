import { connect } from 'node:net';
import { connect as connectTls, type PeerCertificate } from 'node:tls';

const timeoutMs = 3_000;

/** Returns the reason why an endpoint does not accept connections; undefined if it does. */
export function unreachable({ host, port }: { readonly host: string; readonly port: number }): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: timeoutMs });
    const finish = (reason?: string): void => {
      socket.destroy();
      resolve(reason);
    };
    socket
      .once('connect', () => finish())
      .once('timeout', () => finish(`no answer within ${timeoutMs / 1000} s`))
      .once('error', (error: NodeJS.ErrnoException) => finish(error.code ?? error.message));
  });
}

/** Returns the certificate of a server, trusted or not; undefined if it shows no certificate. */
export function peerCertificate({
  host,
  port,
}: {
  readonly host: string;
  readonly port: number;
}): Promise<PeerCertificate | undefined> {
  return new Promise((resolve) => {
    // Safe without verification: nothing is sent, only the certificate is read.
    const socket = connectTls({ host, port, timeout: timeoutMs, rejectUnauthorized: false });
    const finish = (certificate?: PeerCertificate): void => {
      socket.destroy();
      resolve(certificate);
    };
    socket
      .once('secureConnect', () => finish(socket.getPeerCertificate()))
      .once('timeout', () => finish())
      .once('error', () => finish());
  });
}

/** Returns the host and the port of an http or https address. */
export function endpointOf(address: string): { readonly host: string; readonly port: number } {
  const { hostname, port, protocol } = new URL(address);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}
