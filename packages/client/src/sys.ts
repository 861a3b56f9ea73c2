import type { Ask, Download } from './client.ts';
import type { Envelope, Written } from './envelope.ts';
import { below } from './paths.ts';
import { RaftCalls } from './sys-raft.ts';
import { WrappingCalls } from './sys-wrapping.ts';

export interface Health {
  readonly initialized: boolean;
  readonly sealed: boolean;
  readonly standby: boolean;
  readonly performance_standby: boolean;
  readonly server_time_utc: number;
  readonly version: string;
  readonly cluster_id?: string;
  readonly cluster_name?: string;
  readonly clock_skew_ms: number;
  readonly echo_duration_ms: number;
  readonly ha_connection_healthy?: boolean;
  readonly last_request_forwarding_heartbeat_ms?: number;
  readonly removed_from_cluster?: boolean;
}

export interface SealStatus {
  readonly type: string;
  readonly initialized: boolean;
  readonly sealed: boolean;
  /** Threshold and number of the shares. */
  readonly t: number;
  readonly n: number;
  readonly progress: number;
  readonly nonce: string;
  readonly version: string;
  readonly cluster_name?: string;
  readonly cluster_id?: string;
  readonly recovery_seal: boolean;
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

export interface NodeSeen {
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

/** Of a share that was given: how far it is, or the new shares, given out this once. */
export interface RekeyStep extends Partial<RekeyStatus> {
  readonly complete?: boolean;
  readonly nonce: string;
  readonly keys?: readonly string[];
  readonly keys_base64?: readonly string[];
  readonly verification_required: boolean;
  readonly verification_nonce?: string;
}

export interface RootGeneration {
  readonly started: boolean;
  /** Told to who begins and to who gives a share. */
  readonly nonce: string;
  readonly progress: number;
  readonly required: number;
  readonly complete: boolean;
  /** Base64 of the token, XORed with the OTP. */
  readonly encoded_token: string;
  /** Told to who begins without one. */
  readonly otp: string;
  readonly otp_length: number;
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

/** Times are such as `12h` or seconds. */
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

/** The node and the cluster: what lies below `sys/`. */
export class SysCalls {
  readonly #ask: Ask;
  readonly raft: RaftCalls;
  readonly wrapping: WrappingCalls;

  constructor(ask: Ask, download: Download) {
    this.#ask = ask;
    this.raft = new RaftCalls(ask, download);
    this.wrapping = new WrappingCalls(ask);
  }

  /** Of the first address, whatever state the node is in. */
  health(): Promise<Health> {
    // Each state is an answer here, not a failure.
    return this.#ask('GET', 'sys/health', undefined, { open: true, accepts: (status) => status >= 200 && status < 600 });
  }

  sealStatus(): Promise<SealStatus> {
    return this.#ask('GET', 'sys/seal-status', undefined, { open: true });
  }

  initialize(request: InitRequest): Promise<Initialized> {
    return this.#ask('PUT', 'sys/init', request, { open: true });
  }

  /** Gives the node of the first address one share. @param key - hex or base64 */
  unseal(key: string): Promise<SealStatus> {
    return this.#ask('PUT', 'sys/unseal', { key }, { open: true });
  }

  resetUnseal(): Promise<SealStatus> {
    return this.#ask('PUT', 'sys/unseal', { reset: true }, { open: true });
  }

  /** Seals the node of the first address. */
  seal(): Promise<Written> {
    return this.#ask('PUT', 'sys/seal');
  }

  leader(): Promise<Leader> {
    return this.#ask('GET', 'sys/leader', undefined, { open: true });
  }

  haStatus(): Promise<Envelope<{ readonly nodes: readonly NodeSeen[] }>> {
    return this.#ask('GET', 'sys/ha-status');
  }

  stepDown(): Promise<Written> {
    return this.#ask('PUT', 'sys/step-down');
  }

  keyStatus(): Promise<Envelope<KeyStatus>> {
    return this.#ask('GET', 'sys/key-status');
  }

  /** A new term of the barrier's key. */
  rotate(): Promise<Written> {
    return this.#ask('POST', 'sys/rotate/keyring');
  }

  rekeyStatus(): Promise<Envelope<RekeyStatus>> {
    return this.#ask('GET', 'sys/rotate/root/init');
  }

  startRekey(request: {
    readonly secret_shares: number;
    readonly secret_threshold: number;
    readonly require_verification?: boolean;
  }): Promise<Envelope<RekeyStatus>> {
    return this.#ask('POST', 'sys/rotate/root/init', request);
  }

  /** One present share, or the last one that is needed. */
  rekey(given: { readonly key: string; readonly nonce: string }): Promise<Envelope<RekeyStep>> {
    return this.#ask('POST', 'sys/rotate/root/update', given);
  }

  /** One new share, where they wait for that. */
  verifyRekey(given: { readonly key: string; readonly nonce: string }): Promise<Envelope<RekeyStep>> {
    return this.#ask('POST', 'sys/rotate/root/verify', given);
  }

  cancelRekey(): Promise<Written> {
    return this.#ask('DELETE', 'sys/rotate/root/init');
  }

  rootGeneration(): Promise<RootGeneration> {
    return this.#ask('GET', 'sys/generate-root/attempt', undefined, { open: true });
  }

  /** @param otp - with which the token will be masked; the server makes one unless given */
  startRootGeneration(otp?: string): Promise<RootGeneration> {
    return this.#ask('POST', 'sys/generate-root/attempt', { ...(otp !== undefined && { otp }) }, { open: true });
  }

  /** One share, or the last one that is needed. */
  generateRoot(given: { readonly key: string; readonly nonce: string }): Promise<RootGeneration> {
    return this.#ask('POST', 'sys/generate-root/update', given, { open: true });
  }

  /** By the attempt's nonce, or by a token with sudo. */
  cancelRootGeneration(nonce?: string): Promise<Written> {
    const path = 'sys/generate-root/attempt';
    return nonce === undefined ? this.#ask('DELETE', path) : this.#ask('DELETE', path, { nonce }, { open: true });
  }

  mounts(): Promise<Envelope<Readonly<Record<string, Mount>>>> {
    return this.#ask('GET', 'sys/mounts');
  }

  enableMount(path: string, request: MountRequest): Promise<Written> {
    return this.#ask('POST', below('sys/mounts', ...below(path)), request);
  }

  tuneMount(path: string, config: MountConfig): Promise<Written> {
    return this.#ask('POST', below('sys/mounts', ...below(path), 'tune'), config);
  }

  disableMount(path: string): Promise<Written> {
    return this.#ask('DELETE', below('sys/mounts', ...below(path)));
  }

  remount(from: string, to: string): Promise<Envelope<{ readonly migration_id: string }>> {
    return this.#ask('POST', 'sys/remount', { from, to });
  }

  authMethods(): Promise<Envelope<Readonly<Record<string, Mount>>>> {
    return this.#ask('GET', 'sys/auth');
  }

  enableAuth(path: string, request: MountRequest): Promise<Written> {
    return this.#ask('POST', below('sys/auth', ...below(path)), request);
  }

  tuneAuth(path: string, config: MountConfig): Promise<Written> {
    return this.#ask('POST', below('sys/auth', ...below(path), 'tune'), config);
  }

  disableAuth(path: string): Promise<Written> {
    return this.#ask('DELETE', below('sys/auth', ...below(path)));
  }

  policies(): Promise<Envelope<{ readonly keys: readonly string[] }>> {
    return this.#ask('LIST', 'sys/policies/acl');
  }

  policy(name: string): Promise<Envelope<{ readonly name: string; readonly policy: string }>> {
    return this.#ask('GET', below('sys/policies/acl', name));
  }

  /** @param policy - HCL or JSON */
  writePolicy(name: string, policy: string): Promise<Written> {
    return this.#ask('PUT', below('sys/policies/acl', name), { policy });
  }

  deletePolicy(name: string): Promise<Written> {
    return this.#ask('DELETE', below('sys/policies/acl', name));
  }

  /** What the client's own token may do, or another one. */
  capabilities(path: string, token?: string): Promise<Envelope<{ readonly capabilities: readonly string[] }>> {
    return token === undefined
      ? this.#ask('POST', 'sys/capabilities-self', { path }, { repeatable: true })
      : this.#ask('POST', 'sys/capabilities', { path, token }, { repeatable: true });
  }

  audits(): Promise<Envelope<Readonly<Record<string, AuditDevice>>>> {
    return this.#ask('GET', 'sys/audit');
  }

  /** What stands for `input` in the entries of a sink. */
  auditHash(sink: string, input: string): Promise<Envelope<{ readonly hash: string }>> {
    return this.#ask('POST', below('sys/audit-hash', sink), { input }, { repeatable: true });
  }
}
