import { addressText } from '@transitd/configuration';
import { sharedRun } from '@transitd/event-loop';
import { LogLimit, reasonOf } from '@transitd/process';
import { listPath } from './list-delivery.ts';
import type { IdentityUser } from './maintenance/renewal.ts';
import type { NodeIdentity } from './membership/identity.ts';
import type { MembershipList } from './membership/membership-list.ts';
import type { ClusterHost } from './ports/cluster-host.ts';
import type { Storage } from './ports/storage-port.ts';
import { ClusterListener, type ClusterListenerOptions, type RaftStreams } from './transport/cluster-listener.ts';
import { type GuestHandlers, noGuests } from './transport/guest-server.ts';
import { clusterListenAddress } from './transport/listen-address.ts';

type Calls = ClusterListenerOptions['calls'];

/** `serving`: the calls have handlers, and the port is to be opened. */
type Phase =
  | { readonly kind: 'starting' | 'closed' }
  | { readonly kind: 'serving'; readonly calls: Calls }
  | { readonly kind: 'open'; readonly listener: ClusterListener };

/** The cluster port of this node. It opens as soon as the node has an identity and the calls have handlers. */
export class ClusterPort implements IdentityUser {
  readonly #host: Pick<ClusterHost, 'config' | 'log' | 'events' | 'forwarded'>;
  readonly #membershipList: MembershipList;
  readonly #raft: RaftStreams;
  readonly #driver: Pick<Storage['driver'], 'status'>;
  readonly #logLimit: LogLimit;
  #phase: Phase = { kind: 'starting' };
  #guests: GuestHandlers = noGuests;

  constructor(
    host: Pick<ClusterHost, 'config' | 'log' | 'events' | 'forwarded'>,
    membershipList: MembershipList,
    { raft, driver }: { readonly raft: RaftStreams; readonly driver: Pick<Storage['driver'], 'status'> },
  ) {
    this.#host = host;
    this.#membershipList = membershipList;
    this.#raft = raft;
    this.#driver = driver;
    this.#logLimit = new LogLimit({ log: host.log });
    host.events.on('members', () => this.recheck());
  }

  /** Sets the handlers of callers that are no members; undefined removes them. */
  serveGuests(guests: GuestHandlers | undefined): void {
    this.#guests = guests ?? noGuests;
    this.recheck();
  }

  /** Sets the handlers of calls, and opens the port. @throws StartError */
  serve(calls: Calls): Promise<void> {
    if (this.#phase.kind === 'starting') this.#phase = { kind: 'serving', calls };
    return this.#open();
  }

  /** Stores an identity and uses it from the next connection on. @throws StartError */
  async useIdentity(identity: NodeIdentity): Promise<void> {
    await this.#membershipList.setIdentity(identity);
    this.recheck();
    await this.#open();
  }

  /**
   * Opens the port if it is still closed. A founder gets its identity after it has begun to serve; at that moment another process may
   * still use the port.
   */
  async retryOpen(): Promise<void> {
    await this.#open().catch((error: unknown) =>
      this.#host.log.warn({ reason: reasonOf(error) }, 'could not open the cluster port; retrying'),
    );
  }

  /** Applies a change of the membership list or of this node's identity. */
  recheck(): void {
    if (this.#phase.kind === 'open') this.#phase.listener.recheck();
  }

  async close(): Promise<void> {
    const phase = this.#phase;
    this.#phase = { kind: 'closed' };
    if (phase.kind === 'open') await phase.listener.close();
  }

  /**
   * Opens the port. Does nothing until both the handlers and the identity are set, so the call that sets the second of them opens the port.
   */
  async #open(): Promise<void> {
    if (this.#phase.kind === 'serving' && this.#membershipList.identity !== undefined) await this.#listenOnce(this.#phase.calls);
  }

  /** One attempt at a time. */
  readonly #listenOnce = sharedRun((calls: Calls) => this.#listen(calls));

  async #listen(calls: Calls): Promise<void> {
    const { config, log, forwarded } = this.#host;
    const [membershipList, driver] = [this.#membershipList, this.#driver];
    const listener = new ClusterListener({
      members: membershipList,
      calls,
      forwarded,
      forwardedByUnsealed: true,
      raft: this.#raft,
      guests: {
        standing: (certificate) => this.#guests.standing(certificate),
        call: (request, body) => this.#guests.call(request, body),
        stream: (request) => this.#guests.stream(request),
      },
      unlisted: {
        /** While this node hears no leader, unlisted nodes may send it a signed membership list. */
        get calls() {
          return driver.status().leader === 0 ? [`POST ${listPath}`] : [];
        },
      },
      onRefused: ({ address, reason, from }) =>
        this.#logLimit.write(
          'warn',
          `refused ${from ?? address.slice(0, address.lastIndexOf(':'))} ${reason}`,
          { address, ...(from !== undefined && { from, name: membershipList.member(from)?.name }), reason },
          'a connection to the cluster port was refused',
        ),
      onFault: (error) => log.error({ reason: reasonOf(error) }, 'a call on the cluster port failed'),
    });
    const address = clusterListenAddress(config);
    const port = await listener.listen(address);
    if (this.#phase.kind === 'closed') return listener.close();
    this.#phase = { kind: 'open', listener };
    log.info({ address: addressText({ ...address, port }), advertised: config.cluster_addr }, 'the cluster port is open');
  }
}
