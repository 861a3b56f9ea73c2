import type { Download, SendRequest, Streamed } from './connection.ts';
import type { Envelope, RootGeneration, Written } from './envelope.ts';
import { inPage, type Page } from './pages.ts';
import { below } from './paths.ts';
import { FeatureLevelCalls } from './sys-feature-level.ts';
import { RaftCalls } from './sys-raft.ts';
import { ReplicationCalls } from './sys-replication.ts';
import { WrappingCalls } from './sys-wrapping.ts';

export interface Health {
  readonly initialized: boolean;
  readonly sealed: boolean;
  readonly standby: boolean;
  readonly performance_standby: boolean;
  readonly server_time_utc: number;
  readonly version: string;
  /** Empty until the node has joined a cluster; so is `cluster_name`. */
  readonly cluster_id: string;
  readonly cluster_name: string;
  readonly clock_skew_ms: number;
  readonly echo_duration_ms: number;
  readonly ha_connection_healthy?: boolean;
  readonly last_request_forwarding_heartbeat_ms?: number;
  readonly removed_from_cluster?: boolean;
  /** `disabled`, `primary`, `secondary`, or `bootstrapping`: a secondary without a state so far. */
  readonly replication_dr_mode: string;
  /** Why the provider of the seal does not open it, such as `unreachable`. */
  readonly seal_failure?: string;
}

export interface SealStatus {
  readonly type: string;
  readonly initialized: boolean;
  readonly sealed: boolean;
  /** Threshold of the shares; `n` is their number. */
  readonly t: number;
  readonly n: number;
  readonly progress: number;
  readonly nonce: string;
  readonly version: string;
  readonly cluster_name?: string;
  readonly cluster_id?: string;
  readonly recovery_seal: boolean;
  readonly migration: boolean;
  readonly storage_type: string;
  readonly removed_from_cluster: boolean;
  readonly warnings?: readonly string[];
}

export interface InitRequest {
  readonly secret_shares?: number;
  readonly secret_threshold?: number;
  readonly recovery_shares?: number;
  readonly recovery_threshold?: number;
}

export interface Initialized {
  readonly keys: readonly string[];
  readonly keys_base64: readonly string[];
  readonly recovery_keys?: readonly string[];
  readonly recovery_keys_base64?: readonly string[];
  readonly root_token: string;
}

export interface Leader {
  readonly ha_enabled: boolean;
  readonly is_self?: boolean;
  readonly active_time?: string;
  readonly leader_address?: string;
  readonly leader_cluster_address?: string;
  readonly raft_committed_index: number;
  readonly raft_applied_index: number;
}

export interface HaNode {
  readonly hostname: string;
  readonly api_address: string;
  readonly cluster_address: string;
  readonly active_node: boolean;
  readonly last_echo: string | null;
  readonly version: string;
  readonly upgrade_version: string;
}

export interface KeyStatus {
  readonly term: number;
  readonly install_time: string;
  readonly encryptions: number;
}

export interface RekeyStatus {
  readonly started: boolean;
  readonly nonce: string;
  readonly t: number;
  readonly n: number;
  readonly progress: number;
  readonly required: number;
  readonly verification_required: boolean;
}

/** The response to one share: the progress or, once, the new shares. */
export interface RekeyStep extends Partial<RekeyStatus> {
  readonly complete?: boolean;
  readonly nonce: string;
  readonly keys?: readonly string[];
  readonly keys_base64?: readonly string[];
  readonly verification_required: boolean;
  readonly verification_nonce?: string;
}

export interface Mount {
  readonly accessor: string;
  readonly type: string;
  readonly description: string;
  readonly uuid: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly options: Readonly<Record<string, string>> | null;
}

export interface AuditDevice {
  readonly type: string;
  readonly path: string;
  readonly description: string;
  readonly options: Readonly<Record<string, string>>;
}

/** TTLs have the form `12h` or are seconds. */
export interface MountConfig {
  readonly default_lease_ttl?: string;
  readonly max_lease_ttl?: string;
  readonly ciphertext_prefix?: string;
  readonly allowed_managed_keys?: readonly string[];
  readonly description?: string;
}

export interface MountRequest {
  readonly type: string;
  readonly description?: string;
  readonly config?: MountConfig;
  readonly options?: Readonly<Record<string, string>>;
}

/** Calls below `sys/`. */
export class SysCalls {
  readonly #send: SendRequest;
  readonly #download: Download;
  readonly featureLevel: FeatureLevelCalls;
  readonly raft: RaftCalls;
  readonly replication: ReplicationCalls;
  readonly wrapping: WrappingCalls;

  constructor(send: SendRequest, download: Download) {
    this.#send = send;
    this.#download = download;
    this.featureLevel = new FeatureLevelCalls(send);
    this.raft = new RaftCalls(send, download);
    this.replication = new ReplicationCalls(send);
    this.wrapping = new WrappingCalls(send);
  }

  /** Returns the health of the first node in any state. */
  health(): Promise<Health> {
    // The status codes of all states are successes here.
    return this.#send('GET', 'sys/health', undefined, { open: true, accepts: (status) => status >= 200 && status < 600 });
  }

  sealStatus(): Promise<SealStatus> {
    return this.#send('GET', 'sys/seal-status', undefined, { open: true });
  }

  initialize(request: InitRequest): Promise<Initialized> {
    return this.#send('PUT', 'sys/init', request, { open: true });
  }

  /** Sends one share to the first node. @param key - hex or base64 @param migrate - authorizes a migration of the seal */
  unseal(key: string, { migrate = false }: { readonly migrate?: boolean } = {}): Promise<SealStatus> {
    return this.#send('PUT', 'sys/unseal', { key, migrate }, { open: true });
  }

  resetUnseal(): Promise<SealStatus> {
    return this.#send('PUT', 'sys/unseal', { reset: true }, { open: true });
  }

  /** Seals the first node. */
  seal(): Promise<Written> {
    return this.#send('PUT', 'sys/seal');
  }

  leader(): Promise<Leader> {
    return this.#send('GET', 'sys/leader', undefined, { open: true });
  }

  haStatus(): Promise<Envelope<{ readonly nodes: readonly HaNode[] }>> {
    return this.#send('GET', 'sys/ha-status');
  }

  stepDown(): Promise<Written> {
    return this.#send('PUT', 'sys/step-down');
  }

  keyStatus(): Promise<Envelope<KeyStatus>> {
    return this.#send('GET', 'sys/key-status');
  }

  /** Rotates the barrier key: adds a new term to the keyring. */
  rotate(): Promise<Written> {
    return this.#send('POST', 'sys/rotate/keyring');
  }

  rekeyStatus(): Promise<Envelope<RekeyStatus>> {
    return this.#send('GET', 'sys/rotate/root/init');
  }

  startRekey(request: {
    readonly secret_shares: number;
    readonly secret_threshold: number;
    readonly require_verification?: boolean;
  }): Promise<Envelope<RekeyStatus>> {
    return this.#send('POST', 'sys/rotate/root/init', request);
  }

  /** Sends one of the present shares. */
  rekey(given: { readonly key: string; readonly nonce: string }): Promise<Envelope<RekeyStep>> {
    return this.#send('POST', 'sys/rotate/root/update', given);
  }

  /** Sends one of the new shares, if the rekey requires verification. */
  verifyRekey(given: { readonly key: string; readonly nonce: string }): Promise<Envelope<RekeyStep>> {
    return this.#send('POST', 'sys/rotate/root/verify', given);
  }

  cancelRekey(): Promise<Written> {
    return this.#send('DELETE', 'sys/rotate/root/init');
  }

  rootGeneration(): Promise<RootGeneration> {
    return this.#send('GET', 'sys/generate-root/attempt', undefined, { open: true });
  }

  /** Starts a root generation. @param otp - masks the token; the server generates one when absent */
  startRootGeneration(otp?: string): Promise<RootGeneration> {
    return this.#send('POST', 'sys/generate-root/attempt', { ...(otp !== undefined && { otp }) }, { open: true });
  }

  /** Sends one share. */
  generateRoot(given: { readonly key: string; readonly nonce: string }): Promise<RootGeneration> {
    return this.#send('POST', 'sys/generate-root/update', given, { open: true });
  }

  /** Cancels a root generation, authorized by its nonce or by a token with sudo. */
  cancelRootGeneration(nonce?: string): Promise<Written> {
    const path = 'sys/generate-root/attempt';
    return nonce === undefined ? this.#send('DELETE', path) : this.#send('DELETE', path, { nonce }, { open: true });
  }

  /** Returns the lines of the log of the first node, as they are logged. Empty lines keep the connection open. */
  monitor({ level, format }: { readonly level?: string; readonly format?: 'standard' | 'json' } = {}): Promise<Streamed> {
    const query = { ...(level !== undefined && { log_level: level }), ...(format !== undefined && { log_format: format }) };
    return this.#download('sys/monitor', { query, slow: true });
  }

  mounts(): Promise<Envelope<Readonly<Record<string, Mount>>>> {
    return this.#send('GET', 'sys/mounts');
  }

  enableMount(path: string, request: MountRequest): Promise<Written> {
    return this.#send('POST', below('sys/mounts', ...below(path)), request);
  }

  tuneMount(path: string, config: MountConfig): Promise<Written> {
    return this.#send('POST', below('sys/mounts', ...below(path), 'tune'), config);
  }

  disableMount(path: string): Promise<Written> {
    return this.#send('DELETE', below('sys/mounts', ...below(path)));
  }

  remount(from: string, to: string): Promise<Envelope<{ readonly migration_id: string }>> {
    return this.#send('POST', 'sys/remount', { from, to });
  }

  authMethods(): Promise<Envelope<Readonly<Record<string, Mount>>>> {
    return this.#send('GET', 'sys/auth');
  }

  enableAuth(path: string, request: MountRequest): Promise<Written> {
    return this.#send('POST', below('sys/auth', ...below(path)), request);
  }

  tuneAuth(path: string, config: MountConfig): Promise<Written> {
    return this.#send('POST', below('sys/auth', ...below(path), 'tune'), config);
  }

  disableAuth(path: string): Promise<Written> {
    return this.#send('DELETE', below('sys/auth', ...below(path)));
  }

  policies(page: Page = {}): Promise<Envelope<{ readonly keys: readonly string[] }>> {
    return this.#send('LIST', 'sys/policies/acl', undefined, inPage(page));
  }

  policy(name: string): Promise<Envelope<{ readonly name: string; readonly policy: string }>> {
    return this.#send('GET', below('sys/policies/acl', ...below(name)));
  }

  /** Writes a policy. @param policy - HCL or JSON */
  writePolicy(name: string, policy: string): Promise<Written> {
    return this.#send('PUT', below('sys/policies/acl', ...below(name)), { policy });
  }

  deletePolicy(name: string): Promise<Written> {
    return this.#send('DELETE', below('sys/policies/acl', ...below(name)));
  }

  /** Returns the capabilities of another token, or of the client's own when absent. */
  capabilities(path: string, token?: string): Promise<Envelope<{ readonly capabilities: readonly string[] }>> {
    return token === undefined
      ? this.#send('POST', 'sys/capabilities-self', { path }, { repeatable: true })
      : this.#send('POST', 'sys/capabilities', { path, token }, { repeatable: true });
  }

  audits(): Promise<Envelope<Readonly<Record<string, AuditDevice>>>> {
    return this.#send('GET', 'sys/audit');
  }

  /** Returns the hash that replaces `input` in the entries of an audit device. */
  auditHash(device: string, input: string): Promise<Envelope<{ readonly hash: string }>> {
    return this.#send('POST', below('sys/audit-hash', device), { input }, { repeatable: true });
  }
}
