import { connect } from 'node:net';
import { connect as connectTls, type PeerCertificate } from 'node:tls';

const withinMs = 3_000;

/** Why no connection can be made; nothing when one can. */
export function unreachable({ host, port }: { readonly host: string; readonly port: number }): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: withinMs });
    const end = (reason?: string): void => {
      socket.destroy();
      resolve(reason);
    };
    socket
      .once('connect', () => end())
      .once('timeout', () => end(`no answer within ${withinMs / 1000} s`))
      .once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}

/** What a server shows of itself, trusted or not; nothing when it shows nothing. */
export function peerCertificate({
  host,
  port,
}: {
  readonly host: string;
  readonly port: number;
}): Promise<PeerCertificate | undefined> {
  return new Promise((resolve) => {
    // Nothing is sent on it: only what the other side shows is looked at.
    const socket = connectTls({ host, port, timeout: withinMs, rejectUnauthorized: false });
    const end = (certificate?: PeerCertificate): void => {
      socket.destroy();
      resolve(certificate);
    };
    socket
      .once('secureConnect', () => end(socket.getPeerCertificate()))
      .once('timeout', () => end())
      .once('error', () => end());
  });
}

/** Host and port of an http or https address. */
export function endpointOf(address: string): { readonly host: string; readonly port: number } {
  const { hostname, port, protocol } = new URL(address);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}
