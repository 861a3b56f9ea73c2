import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { fingerprintOf } from '../membership/certificate.ts';
import type { NodeIdentity } from '../membership/identity.ts';
import { certificatesOf, type Member, parseHostAndPort } from '../membership/membership.ts';

/** A connection to a peer did not come about: nothing was sent on it. */
export class PeerUnreachable extends Error {
  override readonly name = 'PeerUnreachable';
}

export interface PeerConnectionOptions {
  readonly identity: NodeIdentity;
  /** The address that the connection comes from; the system chooses without it. */
  readonly localAddress: string | undefined;
  /** For the connection and the handshake together. */
  readonly connectMsMax: number;
}

export interface PeerConnection {
  readonly socket: TLSSocket;
  /** What the peer showed. */
  readonly certificate: string;
}

/**
 * Connects to a member by TLS 1.3, each side with its certificate. The connection is handed over only when the peer's certificate is
 * one that the member list names for it: then nothing can have been sent to somebody else. Whether this node is let in shows later.
 * @param done - called once, never before this function returns; `PeerUnreachable` for every failure
 */
export function connectToPeer(
  member: Member,
  { identity, localAddress, connectMsMax }: PeerConnectionOptions,
  done: (error: PeerUnreachable | undefined, connection?: PeerConnection) => void,
): void {
  const socket = connect({
    ...parseHostAndPort(member.clusterAddress),
    ...(localAddress !== undefined && { localAddress }),
    key: identity.key,
    cert: identity.certificate,
    ca: identity.authority,
    minVersion: 'TLSv1.3',
    rejectUnauthorized: false, // our own check instead: that very certificate, whatever its time
  });
  socket.setNoDelay(true).on('error', () => undefined); // `close` follows, also between two users
  const settle = (reason?: string, cause?: Error): void => {
    clearTimeout(deadline);
    socket.off('error', onError).off('close', onClose).off('secureConnect', onSecure);
    if (reason === undefined) return;
    socket.destroy();
    done(new PeerUnreachable(`node ${member.id} at ${member.clusterAddress}: ${reason}`, { cause }));
  };
  const onError = (error: NodeJS.ErrnoException): void => settle(error.code ?? error.message, error);
  const onClose = (): void => settle('the connection ended');
  const onSecure = (): void => {
    const certificate = socket.getPeerX509Certificate();
    const shown = certificate === undefined ? '' : fingerprintOf(certificate);
    if (certificatesOf(member).includes(shown)) {
      settle();
      done(undefined, { socket, certificate: shown });
    } else settle('it shows a certificate that the member list does not name');
  };
  const deadline = setTimeout(() => settle(`no connection within ${connectMsMax} ms`), connectMsMax);
  socket.once('error', onError).once('close', onClose).once('secureConnect', onSecure);
}

/** What outgoing connections bind to, by the host that the cluster port listens on: that address, when it is one of this machine's own. */
export const localAddressFor = (listenHost: string): string | undefined =>
  isIP(listenHost) === 0 || /^[0:.]*$/.test(listenHost) ? undefined : listenHost;
