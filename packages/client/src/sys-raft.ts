import type { Download, SendRequest, Streamed } from './connection.ts';
import type { Envelope, Written } from './envelope.ts';

export interface Server {
  readonly node_id: string;
  readonly id: string;
  readonly address: string;
  readonly leader: boolean;
  readonly voter: boolean;
  readonly non_voter: boolean;
}

export interface JoinRequest {
  readonly leader_api_addr: string;
  /** PEM. */
  readonly leader_ca_cert?: string;
  readonly retry?: boolean;
  readonly non_voter?: boolean;
}

export interface ServerState {
  readonly id: string;
  readonly address: string;
  readonly node_status: string;
  readonly last_contact: string;
  readonly last_term: number;
  readonly last_index: number;
  readonly healthy: boolean;
  readonly stable_since?: string;
  readonly status: string;
  readonly version: string;
}

export interface AutopilotState {
  readonly healthy: boolean;
  readonly failure_tolerance: number;
  readonly leader: string;
  readonly voters: readonly string[];
  readonly non_voters: readonly string[];
  readonly servers: Readonly<Record<string, ServerState>>;
}

/** Progress of a rotation of the cluster's certificate authority. */
export interface AuthorityRotation {
  readonly phase: 'none' | 'announced' | 'switched';
  /** SHA-256 of the certificate of the signing authority, in hex. */
  readonly authority: string;
  /** Names of the members for which the rotation waits. */
  readonly waits_for: readonly string[];
}

export interface AutopilotConfig {
  readonly cleanup_dead_servers: boolean;
  readonly dead_server_last_contact_threshold: string;
  readonly last_contact_threshold: string;
  readonly max_trailing_logs: number;
  readonly min_quorum: number;
  readonly server_stabilization_time: string;
}

/** Calls for cluster members and snapshots. */
export class RaftCalls {
  readonly #send: SendRequest;
  readonly #download: Download;

  constructor(send: SendRequest, download: Download) {
    this.#send = send;
    this.#download = download;
  }

  /** Returns the configuration that the first node knows, also without a leader. */
  configuration(): Promise<Envelope<{ readonly config: { readonly servers: readonly Server[] } }>> {
    return this.#send('GET', 'sys/storage/raft/configuration');
  }

  /** Joins the first node to a cluster. */
  join(request: JoinRequest): Promise<{ readonly joined: boolean }> {
    return this.#send('POST', 'sys/storage/raft/join', request, { open: true, slow: true });
  }

  removePeer(serverId: string): Promise<Written> {
    return this.#send('POST', 'sys/storage/raft/remove-peer', { server_id: serverId });
  }

  promote(serverId: string): Promise<Written> {
    return this.#send('POST', 'sys/storage/raft/promote', { server_id: serverId });
  }

  demote(serverId: string): Promise<Written> {
    return this.#send('POST', 'sys/storage/raft/demote', { server_id: serverId });
  }

  /** Starts a rotation of the certificate authority of the nodes. */
  rotateAuthority(): Promise<Written> {
    return this.#send('POST', 'sys/storage/raft/authority/rotate');
  }

  authorityRotation(): Promise<Envelope<AuthorityRotation>> {
    return this.#send('GET', 'sys/storage/raft/authority');
  }

  autopilotState(): Promise<Envelope<AutopilotState>> {
    return this.#send('GET', 'sys/storage/raft/autopilot/state');
  }

  autopilotConfig(): Promise<Envelope<AutopilotConfig>> {
    return this.#send('GET', 'sys/storage/raft/autopilot/configuration');
  }

  configureAutopilot(config: Partial<AutopilotConfig>): Promise<Written> {
    return this.#send('POST', 'sys/storage/raft/autopilot/configuration', config);
  }

  /** Returns a gzipped tar of the cluster's state. The stream fails if it is incomplete. */
  snapshot(): Promise<Streamed> {
    return this.#download('sys/storage/raft/snapshot', { slow: true });
  }

  /** Restores a snapshot. @param force - also restores a snapshot that was made under other keys */
  restoreSnapshot(snapshot: Streamed, { force = false }: { readonly force?: boolean } = {}): Promise<Written> {
    return this.#send('POST', `sys/storage/raft/snapshot${force ? '-force' : ''}`, snapshot, { slow: true });
  }
}
