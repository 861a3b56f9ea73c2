import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { addressText } from '@transitd/configuration';
import { endpointOf } from '@transitd/http';
import type { NodeId } from '@transitd/raft-core';
import { fingerprintOf, nameByAny } from '../membership/certificate.ts';
import { type NodeIdentity, nameOf } from '../membership/identity.ts';
import type { ListedNode } from '../membership/membership.ts';

/** The rules by which connections to the cluster port are admitted. */
export interface CallerChecks {
  readonly members: AdmittedMembers;
  /**
   * The calls, named as in `calls`, that a node may make whose certificate the cluster's authority signed, but no membership list names.
   * Other requests of such a node are not read.
   */
  readonly unlisted?: { readonly calls: readonly string[] };
  /** Admits callers that are no members, by their certificates. */
  readonly guests: GuestChecks;
  /** A connection was refused; `from` is the id in its certificate, if the cluster's authority signed that. */
  readonly onRefused?: (refused: { readonly address: string; readonly reason: string; readonly from?: NodeId }) => void;
}

/** This node and the members, as they are at present. */
interface AdmittedMembers {
  requireIdentity(): NodeIdentity;
  /** The authorities that this node trusts; asked for every connection. By default, the authority of the identity is trusted. */
  readonly authorities?: readonly X509Certificate[];
  /** Returns the node that a certificate belongs to, by the newest membership list; asked for every request. */
  memberState(fingerprint: string): ListedNode | undefined;
}

/** The rules for callers that are no members. A certificate that names a node is never one of a guest. */
export interface GuestChecks {
  /**
   * Returns whether a connection with this certificate (its fingerprint) is admitted; called for every connection, and for open ones at
   * each check. `ended`: only so that the caller learns that its right has ended.
   */
  standing(certificate: string): GuestStanding | undefined;
}

export type GuestStanding = 'current' | 'ended';

/** A connection of a caller that is no member. */
export interface Guest {
  /** Fingerprint. */
  readonly certificate: string;
  readonly socket: TLSSocket;
  readonly standing: GuestStanding;
}

/** A connection that was admitted, and the node at its far end. */
export interface Caller {
  readonly from: NodeId;
  readonly certificate: string;
  readonly socket: TLSSocket;
  /** Requests without a complete answer. */
  inFlight: number;
  /** Whether it has proved on this connection that it is unsealed. */
  isUnsealed: boolean;
  /** Long-lived streams, which end with the caller's membership: Raft messages and snapshots. */
  readonly streams: Set<{ end(): void }>;
}

/** Maximum number of concurrent TLS handshakes. A further one displaces the oldest, so silent strangers cannot keep members out. */
const handshakesMax = 512;
/** Maximum number of connections of all unlisted nodes together. */
const unlistedMax = 8;
/** Maximum number of connections of one node, whose client opens fewer. */
const connectionsPerNodeMax = 256;
/** Maximum number of connections of one guest. A further one displaces the oldest, so that connections that hang keep no guest out. */
const connectionsPerGuestMax: Readonly<Record<GuestStanding, number>> = { current: 4, ended: 1 };

/** Decides which connections to the cluster port are admitted, and for how long; knows the caller on each of them. */
export class Callers {
  readonly #checks: CallerChecks;
  /** By remote address and port. */
  readonly #handshakes = new Map<string, Socket>();
  readonly #admitted = new Map<Duplex, Caller>();
  readonly #guests = new Map<Duplex, Guest>();
  readonly #clusterId: string;
  #ownAuthority: X509Certificate;

  constructor(checks: CallerChecks) {
    const identity = checks.members.requireIdentity(); // it names the cluster
    this.#checks = checks;
    this.#ownAuthority = new X509Certificate(identity.authority);
    this.#clusterId = nameOf(identity).clusterId;
  }

  /** This node has renewed its certificate. */
  useIdentity({ authority }: NodeIdentity): void {
    this.#ownAuthority = new X509Certificate(authority);
  }

  /** Returns the caller on an admitted connection. */
  on(socket: Duplex): Caller | undefined {
    return this.#admitted.get(socket);
  }

  /** Returns the guest on an admitted connection. */
  guestOn(socket: Duplex): Guest | undefined {
    return this.#guests.get(socket);
  }

  /** Cuts guests whose right has ended; ends the streams of nodes that are no longer members, and the connections of unknown nodes. */
  recheck(): void {
    for (const { socket, certificate, standing } of this.#guests.values())
      if (this.#checks.guests.standing(certificate) !== standing) socket.destroy();
    for (const caller of this.#admitted.values()) {
      const memberState = this.memberState(caller);
      if (memberState === 'member') continue;
      for (const one of caller.streams) one.end();
      // Lets an answer in flight finish: it may be the answer that reports the removal.
      if (memberState === undefined && caller.inFlight === 0) caller.socket.destroy();
    }
  }

  close(): void {
    for (const socket of [...this.#admitted.keys(), ...this.#guests.keys(), ...this.#handshakes.values()]) socket.destroy();
  }

  /** Counts a connection without a finished TLS handshake. */
  handshake(socket: Socket): void {
    const from = endpointOf(socket);
    this.#handshakes.set(from, socket);
    socket.once('close', () => {
      if (this.#handshakes.get(from) === socket) this.#handshakes.delete(from);
    });
    const [oldest] = this.#handshakes.values();
    if (this.#handshakes.size > handshakesMax) oldest?.destroy();
  }

  /** Admits a connection whose TLS handshake has finished, or cuts it. */
  admit(socket: TLSSocket): void {
    this.#handshakes.delete(endpointOf(socket));
    socket.on('error', () => undefined); // `close` follows
    if (this.#admitGuest(socket)) return;
    const caller = this.#callerOn(socket);
    if (caller === undefined) {
      socket.destroy();
      return;
    }
    this.#admitted.set(socket, caller);
    socket.once('close', () => this.#admitted.delete(socket));
  }

  /** Admits the connection if its certificate is one of a guest, and of no node; returns whether it did. */
  #admitGuest(socket: TLSSocket): boolean {
    const shown = socket.getPeerX509Certificate();
    if (shown === undefined || socket.isSessionReused()) return false;
    const certificate = fingerprintOf(shown);
    const standing = this.#checks.guests.standing(certificate);
    if (standing === undefined || nameByAny(shown, this.#authorities) !== undefined) return false;
    const others = [...this.#guests.values()].filter((guest) => guest.certificate === certificate);
    if (others.length >= connectionsPerGuestMax[standing]) others[0]?.socket.destroy();
    this.#guests.set(socket, { certificate, socket, standing });
    socket.once('close', () => this.#guests.delete(socket));
    return true;
  }

  /**
   * Returns the caller, if the cluster's authority signed its certificate and a list names that certificate. A resumed session shows no
   * certificate.
   */
  #callerOn(socket: TLSSocket): Caller | undefined {
    const certificate = socket.getPeerX509Certificate();
    const { remoteAddress: host = '', remotePort: port = 0 } = socket;
    const refused = (reason: string, from?: NodeId): undefined => {
      this.#checks.onRefused?.({ address: addressText({ host, port }), reason, ...(from !== undefined && { from }) });
      return undefined;
    };
    if (certificate === undefined || socket.isSessionReused()) return refused('it shows no certificate');
    const name = nameByAny(certificate, this.#authorities);
    if (name === undefined) return refused("its certificate is not signed by this cluster's authority");
    const from = name.nodeId;
    if (name.clusterId !== this.#clusterId) return refused('its certificate is for another cluster', from);
    const caller = {
      from,
      certificate: fingerprintOf(certificate),
      socket,
      inFlight: 0,
      isUnsealed: false,
      streams: new Set<never>(),
    };
    if (this.memberState(caller) === undefined && !this.#hasRoomForUnlisted())
      return refused('the membership list of this node does not name its certificate', from);
    let connections = 0;
    for (const one of this.#admitted.values()) if (one.from === from) connections++;
    return connections < connectionsPerNodeMax ? caller : refused('it has too many connections', from);
  }

  #hasRoomForUnlisted(): boolean {
    if (this.#openCalls.length === 0) return false;
    let unlisted = 0;
    for (const caller of this.#admitted.values()) if (this.memberState(caller) === undefined) unlisted++;
    return unlisted < unlistedMax;
  }

  /** @param call - as in `ClusterListenerOptions.calls` */
  isOpenToUnlisted(call: string): boolean {
    return this.#openCalls.includes(call);
  }

  get #authorities(): readonly X509Certificate[] {
    return this.#checks.members.authorities ?? [this.#ownAuthority];
  }

  get #openCalls(): readonly string[] {
    return this.#checks.unlisted?.calls ?? [];
  }

  memberState({ from, certificate }: Pick<Caller, 'from' | 'certificate'>): ListedNode['memberState'] | undefined {
    const listed = this.#checks.members.memberState(certificate);
    return listed?.id === from ? listed.memberState : undefined;
  }
}
