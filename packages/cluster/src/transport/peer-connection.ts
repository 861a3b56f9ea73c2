import type { X509Certificate } from 'node:crypto';
import { connect, type TLSSocket } from 'node:tls';
import { fingerprintOf } from '../membership/certificate.ts';
import type { NodeIdentity } from '../membership/identity.ts';
import { certificatesOf, type Member, parseHostAndPort } from '../membership/membership.ts';
import type { Incarnation } from './incarnations.ts';

/** A connection to a peer failed before anything was sent on it. */
export class PeerUnreachable extends Error {
  override readonly name = 'PeerUnreachable';
}

/** This node's end of its connections to peers. */
export interface LocalEnd {
  /** The present identity of this node. */
  readonly members: { requireIdentity(): NodeIdentity };
  /** Peers use it to detect processes that run on copies of this node's disk. */
  readonly incarnation: Incarnation;
  /** Local address of the connections; the system chooses one when undefined. */
  readonly localAddress?: string | undefined;
}

export interface PeerConnectionOptions extends Pick<LocalEnd, 'localAddress'> {
  readonly identity: NodeIdentity;
  /** Limit for the connection and the handshake together. */
  readonly connectMsMax: number;
}

interface PeerConnection {
  readonly socket: TLSSocket;
  /** Fingerprint of the certificate that the peer showed. */
  readonly certificate: string;
}

/** Whether the host of the peer refused the connection: nothing listens at that address. */
export const isConnectionRefused = ({ cause }: PeerUnreachable): boolean =>
  (cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED';

/**
 * Connects to a member by TLS 1.3 with certificates on both sides. `done` gets the connection only when the membership list names the
 * peer's certificate for this member, so nothing is ever sent to another node. The peer may still refuse this node afterwards.
 * @param done - called once, never before this function returns; `PeerUnreachable` for every failure
 */
export function connectToPeer(
  member: Member,
  { identity, ...options }: PeerConnectionOptions,
  done: (error: PeerUnreachable | undefined, connection?: PeerConnection) => void,
): void {
  connectTo(
    {
      ...options,
      address: member.clusterAddress,
      name: `node ${member.id} at ${member.clusterAddress}`,
      identity,
      accepts: (certificate) =>
        certificatesOf(member).includes(fingerprintOf(certificate))
          ? undefined
          : 'it shows a certificate that the membership list does not name',
    },
    done,
  );
}

interface CheckedConnectionOptions extends Pick<PeerConnectionOptions, 'localAddress' | 'connectMsMax'> {
  /** `host:port`. */
  readonly address: string;
  /** The far end, in error messages. */
  readonly name: string;
  readonly identity: Pick<NodeIdentity, 'key' | 'certificate' | 'authority'>;
  /** Returns why the far end is refused for its certificate; undefined if it is accepted. */
  readonly accepts: (certificate: X509Certificate) => string | undefined;
}

/**
 * Connects by TLS 1.3 with certificates on both sides; `accepts` replaces Node's check of the certificate.
 * @param done - called once, never before this function returns; `PeerUnreachable` for every failure
 */
export function connectTo(
  { address, name, identity, accepts, localAddress, connectMsMax }: CheckedConnectionOptions,
  done: (error: PeerUnreachable | undefined, connection?: PeerConnection) => void,
): void {
  const socket = connect({
    ...parseHostAndPort(address),
    ...(localAddress !== undefined && { localAddress }),
    key: identity.key,
    cert: identity.certificate,
    ca: identity.authority,
    minVersion: 'TLSv1.3',
    rejectUnauthorized: false, // replaced by our own check: exactly the listed certificate, even if it has expired
  });
  socket.setNoDelay(true).on('error', () => undefined); // `close` follows, also while no request uses the socket
  const finish = (reason?: string, cause?: Error): void => {
    clearTimeout(deadline);
    socket.off('error', onError).off('close', onClose).off('secureConnect', onSecure);
    if (reason === undefined) return;
    socket.destroy();
    done(new PeerUnreachable(`${name}: ${reason}`, { cause }));
  };
  const onError = (error: NodeJS.ErrnoException): void => finish(error.code ?? error.message, error);
  const onClose = (): void => finish('the connection ended');
  const onSecure = (): void => {
    const certificate = socket.getPeerX509Certificate();
    const refused = certificate === undefined ? 'it shows no certificate' : accepts(certificate);
    finish(refused);
    if (certificate !== undefined && refused === undefined) done(undefined, { socket, certificate: fingerprintOf(certificate) });
  };
  const deadline = setTimeout(() => finish(`no connection within ${connectMsMax} ms`), connectMsMax);
  socket.once('error', onError).once('close', onClose).once('secureConnect', onSecure);
}
