import { isIP } from 'node:net';
import type { Config } from '@transitd/configuration';
import { LogLimit, reasonOf } from '@transitd/process';
import { listPath } from './calls.ts';
import type { NodeIdentity } from './membership/identity.ts';
import type { MembershipList } from './membership/membership-list.ts';
import type { ClusterHost } from './ports/cluster-host.ts';
import { ClusterListener, type ClusterListenerOptions } from './transport/cluster-listener.ts';
import type { GuestHandlers } from './transport/guest-server.ts';
import { localAddressFor } from './transport/peer-connection.ts';

export interface ClusterPortOptions extends Pick<ClusterHost, 'config' | 'log'>, Pick<ClusterListenerOptions, 'raft' | 'judge'> {
  readonly membershipList: MembershipList;
  /** Whether this node hears no leader, so that unlisted nodes may send it a signed membership list. */
  readonly isLeaderless: () => boolean;
}

/** Returns where the cluster port listens. */
export function clusterListenAddress({
  cluster_listen,
  cluster_addr = '',
  listeners,
}: Pick<Config, 'cluster_listen' | 'cluster_addr' | 'listeners'>): { readonly host: string; readonly port: number } {
  const port = Number(cluster_addr.slice(cluster_addr.lastIndexOf(':') + 1));
  return cluster_listen ?? { host: listeners[0]?.address.host ?? '127.0.0.1', port };
}

/** The cluster port of this node. It opens as soon as the node has an identity and the calls have handlers. */
export class ClusterPort {
  readonly #options: ClusterPortOptions;
  readonly #logLimit: LogLimit;
  #calls: ClusterListenerOptions['calls'] | undefined;
  #forwarded: ClusterListenerOptions['forwarded'] | undefined;
  #guests: GuestHandlers | undefined;
  #listener: ClusterListener | undefined;
  #opening: Promise<void> | undefined;
  #closed = false;

  constructor(options: ClusterPortOptions) {
    this.#options = options;
    this.#logLimit = new LogLimit({ log: options.log, nowMs: () => performance.now() });
  }

  /** The address that outgoing connections bind to. */
  get localAddress(): string | undefined {
    return localAddressFor(this.#address.host);
  }

  /** Sets the handler of requests that other members forward. */
  serveForwarded(forwarded: ClusterListenerOptions['forwarded']): void {
    this.#forwarded = forwarded;
  }

  /** Sets the handlers of callers that are no members; undefined removes them. */
  serveGuests(guests: GuestHandlers | undefined): void {
    this.#guests = guests;
    this.recheck();
  }

  /** Sets the handlers of calls, and opens the port. @throws StartError */
  serve(calls: ClusterListenerOptions['calls']): Promise<void> {
    this.#calls = calls;
    return this.#open();
  }

  /** Stores an identity and uses it from the next connection on. @throws StartError */
  async useIdentity(identity: NodeIdentity): Promise<void> {
    await this.#options.membershipList.setIdentity(identity);
    this.recheck();
    await this.#open();
  }

  /**
   * Opens the port if it is still closed. A founder gets its identity after it has begun to serve; at that moment another process may
   * still use the port.
   */
  async retryOpen(): Promise<void> {
    await this.#open().catch((error: unknown) =>
      this.#options.log.warn({ reason: reasonOf(error) }, 'could not open the cluster port; retrying'),
    );
  }

  /** Applies a change of the membership list or of this node's identity. */
  recheck(): void {
    this.#listener?.recheck();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#listener?.close();
  }

  get #address(): { readonly host: string; readonly port: number } {
    return clusterListenAddress(this.#options.config);
  }

  /**
   * Opens the port, one attempt at a time. Does nothing until both the handlers and the identity are set, so the call that sets the second
   * of them opens the port.
   */
  async #open(): Promise<void> {
    const calls = this.#calls;
    const isReady = calls !== undefined && this.#options.membershipList.identity !== undefined;
    if (!isReady || this.#listener !== undefined || this.#closed) return;
    this.#opening ??= this.#listen(calls).finally(() => {
      this.#opening = undefined;
    });
    await this.#opening;
  }

  async #listen(calls: ClusterListenerOptions['calls']): Promise<void> {
    const { config, log, membershipList, raft, judge, isLeaderless } = this.#options;
    const listener = new ClusterListener({
      identity: () => membershipList.requireIdentity(),
      authorities: () => membershipList.authorities,
      memberState: (fingerprint) => membershipList.memberState(fingerprint),
      calls,
      forwarded: (req, res, from) => {
        if (this.#forwarded === undefined) res.destroy();
        else this.#forwarded(req, res, from);
      },
      forwardedByUnsealed: true,
      raft,
      judge,
      guests: {
        standing: (certificate) => this.#guests?.standing(certificate),
        call: async (request, body) => this.#guests?.call(request, body),
        stream: (request) => this.#guests?.stream(request),
      },
      openToUnlisted: () => (isLeaderless() ? [`POST ${listPath}`] : []),
      onRefused: ({ address, reason, from }) =>
        this.#logLimit.write(
          'warn',
          `refused ${from ?? address.slice(0, address.lastIndexOf(':'))} ${reason}`,
          { address, ...(from !== undefined && { from, name: membershipList.member(from)?.name }), reason },
          'a connection to the cluster port was refused',
        ),
      onFault: (error) => log.error({ reason: reasonOf(error) }, 'a call on the cluster port failed'),
    });
    const { host } = this.#address;
    const port = await listener.listen(this.#address);
    if (this.#closed) return listener.close();
    this.#listener = listener;
    log.info(
      { address: isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`, advertised: config.cluster_addr },
      'the cluster port is open',
    );
  }
}
