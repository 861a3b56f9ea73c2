import { type Cluster, ReplicationPort, type SecondaryDesk } from '@transitd/cluster';
import type { Logger, RecordClock } from '@transitd/process';
import type { PrimaryCluster, StoredRegistry } from '@transitd/replication';
import type { ReplicationRole } from './replication-role.ts';

interface PortOptions {
  readonly cluster: Pick<Cluster, 'serveSecondaries' | 'activeMember'>;
  readonly role: ReplicationRole;
  readonly registry: StoredRegistry;
  readonly desk: SecondaryDesk;
  readonly clock: RecordClock;
  readonly log: Logger;
}

/** The part of this node's cluster port that secondaries use. It is open while this cluster is a primary and this node is unsealed. */
export class PortForSecondaries {
  readonly #primary: PrimaryCluster;
  readonly #options: PortOptions;
  #port: ReplicationPort | undefined;

  constructor(primary: PrimaryCluster, options: PortOptions) {
    this.#primary = primary;
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#port !== undefined;
  }

  get connected(): ReplicationPort['connected'] {
    return this.#port?.connected ?? [];
  }

  /** @throws StoreError, CodecError */
  async open(): Promise<void> {
    if (this.#port !== undefined) return;
    await this.#options.registry.refresh();
    this.#port = new ReplicationPort({ ...this.#options, primary: this.#primary });
    this.#options.cluster.serveSecondaries(this.#port);
  }

  /** Called after this node has applied entries. */
  progress(): void {
    this.#port?.progress();
  }

  /** Ends all connections. */
  disconnect(): void {
    this.#port?.disconnect();
  }

  close(): void {
    if (this.#port === undefined) return;
    this.#options.cluster.serveSecondaries(undefined);
    this.#port.close();
    this.#port = undefined;
  }
}
