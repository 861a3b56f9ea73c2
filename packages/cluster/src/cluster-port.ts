import { isIP } from 'node:net';
import { LogLimit, reasonOf } from '@transitd/process';
import { listPath } from './calls.ts';
import type { NodeIdentity } from './membership/identity.ts';
import type { MembershipList } from './membership/membership-list.ts';
import type { ClusterHost } from './ports/cluster-host.ts';
import { ClusterListener, type ClusterListenerOptions } from './transport/cluster-listener.ts';
import { localAddressFor } from './transport/peer-connection.ts';

export interface ClusterPortOptions extends Pick<ClusterHost, 'config' | 'log'>, Pick<ClusterListenerOptions, 'raft' | 'judge'> {
  readonly membershipList: MembershipList;
  /** No leader is heard: nodes that no list names may show a signed membership list. */
  readonly isLeaderless: () => boolean;
}

/** Where other members reach this node: open as soon as there is an identity to show and something that answers. */
export class ClusterPort {
  readonly #options: ClusterPortOptions;
  readonly #logLimit: LogLimit;
  #calls: ClusterListenerOptions['calls'] | undefined;
  #forwarded: ClusterListenerOptions['forwarded'] | undefined;
  #listener: ClusterListener | undefined;
  #opening: Promise<void> | undefined;
  #closed = false;

  constructor(options: ClusterPortOptions) {
    this.#options = options;
    this.#logLimit = new LogLimit({ log: options.log, nowMs: () => performance.now() });
  }

  /** What outgoing connections bind to. */
  get localAddress(): string | undefined {
    return localAddressFor(this.#address.host);
  }

  /** Who takes in what other members hand on. */
  serveForwarded(forwarded: ClusterListenerOptions['forwarded']): void {
    this.#forwarded = forwarded;
  }

  /** Answers these calls from now on. @throws StartError */
  serve(calls: ClusterListenerOptions['calls']): Promise<void> {
    this.#calls = calls;
    return this.#open();
  }

  /** Puts an identity in force: durably, and from the next connection on. @throws StartError */
  async show(identity: NodeIdentity): Promise<void> {
    await this.#options.membershipList.become(identity);
    this.recheck();
    await this.#open();
  }

  /** A founder becomes one of several while it serves already: its port may be in use, and free later. */
  async openAgain(): Promise<void> {
    await this.#open().catch((error: unknown) =>
      this.#options.log.warn({ reason: reasonOf(error) }, 'the cluster port is not open yet'),
    );
  }

  /** The member list or this node's identity may have changed. */
  recheck(): void {
    this.#listener?.recheck();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#listener?.close();
  }

  get #address(): { readonly host: string; readonly port: number } {
    const { cluster_listen, cluster_addr = '', listeners } = this.#options.config;
    const port = Number(cluster_addr.slice(cluster_addr.lastIndexOf(':') + 1));
    return cluster_listen ?? { host: listeners[0]?.address.host ?? '127.0.0.1', port };
  }

  /** One attempt at a time. What is not ready is no attempt: whoever makes it ready would wait for that instead of opening. */
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
      raft,
      judge,
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
