import type { SendRequest } from './connection.ts';
import type { Envelope, RootGeneration, Written } from './envelope.ts';

/** The disaster-recovery replication of a cluster, as one node knows it. Fields that only the active node knows are absent elsewhere. */
export interface ReplicationStatus {
  /** `primary`, `secondary` or `disabled`. */
  readonly mode: string;
  readonly state?: string;
  readonly cluster_id?: string;
  readonly epoch?: number;
  /** Position of a primary. */
  readonly last_wal?: number;
  /** Position of a secondary. */
  readonly last_remote_wal?: number;
  readonly merkle_root?: string;
  readonly secondaries?: readonly {
    readonly node_id: string;
    readonly connection_status: string;
    readonly last_wal?: number;
    readonly lag_entries?: number;
    readonly lag_ms?: number;
    readonly last_heartbeat_duration_ms?: number;
    /** A later epoch that it has named without a proof. */
    readonly unproven_epoch?: number;
  }[];
  readonly secondary_id?: string;
  readonly connection_status?: string;
  /** Why a secondary no longer follows; absent while it does. */
  readonly stop_reason?: string;
  readonly known_primary_cluster_addrs?: readonly string[];
  readonly lag_entries?: number;
  readonly lag_ms?: number;
  /** True while a secondary has the state from before a restore of its primary; absent otherwise. */
  readonly misses_restore?: boolean;
  /** Age of the newest canary of the primary, on a secondary. */
  readonly replication_primary_canary_age_ms?: number;
  readonly fence?: { readonly state: string; readonly fence_after_ms: number };
  /** Absent while a primary uses key material at once. */
  readonly acknowledge?: { readonly mode: string; readonly timeout_ms: number; readonly on_timeout: string };
  /** Name of the newest state that this node has kept of a former primary. */
  readonly diverged_state?: string;
  /** The last promotion of this cluster. */
  readonly promotion?: Omit<ReplicationPromotion, 'last_contact'> & { readonly time: string; readonly force: boolean };
  /** The changes that this former primary lost when it followed its successor. */
  readonly divergence?: ReplicationDivergence;
}

export interface ReplicationDivergence {
  /** The node that has the snapshot and the list of changes in `diverged/`. */
  readonly node_id: string;
  readonly snapshot: string;
  readonly time: string;
  readonly point: number;
  readonly position: number;
}

/** The numbers of lost changes. */
export interface ReplicationLosses extends ReplicationDivergence {
  readonly written: number;
  readonly deleted: number;
  readonly key_versions: number;
  readonly tokens: number;
  readonly revoked_tokens: number;
}

/** The answer to a promotion. The last five fields are absent if the node has not heard the primary since it became active. */
export interface ReplicationPromotion {
  readonly position: number;
  readonly lossless: boolean;
  /** Entries of the primary that are known to be missing. */
  readonly missing: number;
  /** The primary had been restored from a backup, and this cluster continues with the state from before. */
  readonly misses_restore: boolean;
  readonly primary_position?: number;
  readonly lag_entries?: number;
  readonly lag_ms?: number;
  readonly last_contact_ms?: number;
  readonly last_contact?: string;
}

export interface SecondaryTokenRequest {
  readonly id: string;
  readonly ttl?: string;
  readonly secondary_public_key?: string;
}

export interface AcknowledgeRequest {
  readonly acknowledge: 'key_material' | 'none';
  /** Such as `5s`, which is the default. */
  readonly timeout?: string;
  /** `refuse` (the default) or `degrade`. */
  readonly on_timeout?: string;
}

export interface SalvageRequest {
  /** Name of the archive. */
  readonly snapshot: string;
  /** `transit` when absent. */
  readonly mount?: string;
  /** Name of the key in the archive. */
  readonly key: string;
  /** Name of the restored key. */
  readonly name: string;
}

/** Authorizes a change of a secondary instead of a token. */
interface Authorized {
  readonly operationToken?: string | undefined;
}

const dr = 'sys/replication/dr';
const ceremony = `${dr}/secondary/generate-operation-token`;
const changeOf = ({ operationToken }: Authorized): object =>
  operationToken === undefined ? {} : { dr_operation_token: operationToken };

/** Calls for disaster-recovery replication. */
export class ReplicationCalls {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  status(): Promise<Envelope<ReplicationStatus>> {
    return this.#send('GET', `${dr}/status`, undefined, { open: true });
  }

  /** Reads what this former primary lost when it followed its successor. */
  divergence(): Promise<Envelope<ReplicationLosses>> {
    return this.#send('GET', `${dr}/divergence`);
  }

  /** @param fenceAfter - such as `10s`; no fence by default */
  enablePrimary(fenceAfter?: string): Promise<Written> {
    return this.#send('POST', `${dr}/primary/enable`, fenceAfter === undefined ? {} : { fence_after: fenceAfter });
  }

  /** Sets whether key material is used only once each secondary has it. */
  acknowledge(request: AcknowledgeRequest): Promise<Written> {
    return this.#send('POST', `${dr}/primary/acknowledge`, request);
  }

  demotePrimary(): Promise<Written> {
    return this.#send('POST', `${dr}/primary/demote`, {});
  }

  disablePrimary(): Promise<Written> {
    return this.#send('POST', `${dr}/primary/disable`, {});
  }

  secondaryToken(
    request: SecondaryTokenRequest,
    { wrapTtl }: { readonly wrapTtl?: string | undefined } = {},
  ): Promise<Envelope<{ readonly token: string }>> {
    return this.#send('POST', `${dr}/primary/secondary-token`, request, wrapTtl === undefined ? {} : { wrapTtl });
  }

  revokeSecondary(id: string): Promise<Written> {
    return this.#send('POST', `${dr}/primary/revoke-secondary`, { id });
  }

  /** Restores a key from the kept state of a former primary, whose archive is on the active node. */
  salvage(request: SalvageRequest): Promise<Written> {
    return this.#send('POST', `${dr}/primary/salvage`, request, { slow: true });
  }

  enableSecondary(token: string): Promise<Written> {
    return this.#send('POST', `${dr}/secondary/enable`, { token });
  }

  /** With a fence, the answer comes after the wait for it. */
  promote({ force, ...authorized }: { readonly force: boolean } & Authorized): Promise<Envelope<ReplicationPromotion>> {
    return this.#change('secondary/promote', { force, ...changeOf(authorized) }, { ...authorized, slow: true });
  }

  /** The secondary keeps its state and serves it. With a fence, the answer comes after the wait for it. */
  disableSecondary({ force, ...authorized }: { readonly force: boolean } & Authorized): Promise<Written> {
    return this.#change('secondary/disable', { force, ...changeOf(authorized) }, { ...authorized, slow: true });
  }

  /** Makes a key for which the primary can encrypt the next activation token. */
  generatePublicKey(authorized: Authorized = {}): Promise<Envelope<{ readonly secondary_public_key: string }>> {
    return this.#change('secondary/generate-public-key', changeOf(authorized), authorized);
  }

  /** Connects a secondary by another activation token; its records stay. */
  updatePrimary({ token, ...authorized }: { readonly token: string } & Authorized): Promise<Written> {
    return this.#change('secondary/update-primary', { token, ...changeOf(authorized) }, authorized);
  }

  /** Connects a secondary again, also after it has stopped. */
  recover({ resynchronize, ...authorized }: { readonly resynchronize: boolean } & Authorized): Promise<Written> {
    return this.#change('secondary/recover', { resynchronize, ...changeOf(authorized) }, authorized);
  }

  operationTokenGeneration(): Promise<RootGeneration> {
    return this.#send('GET', `${ceremony}/attempt`, undefined, { open: true });
  }

  /** @param otp - masks the token; the server generates one when absent */
  startOperationToken(otp?: string): Promise<RootGeneration> {
    return this.#send('POST', `${ceremony}/attempt`, { ...(otp !== undefined && { otp }) }, { open: true });
  }

  /** Sends one share. */
  generateOperationToken(given: { readonly key: string; readonly nonce: string }): Promise<RootGeneration> {
    return this.#send('POST', `${ceremony}/update`, given, { open: true });
  }

  /** Cancels a generation, authorized by its nonce or by a token with sudo. */
  cancelOperationToken(nonce?: string): Promise<Written> {
    const path = `${ceremony}/attempt`;
    return nonce === undefined ? this.#send('DELETE', path) : this.#send('DELETE', path, { nonce }, { open: true });
  }

  /** Ends an operation token. */
  deleteOperationToken(operationToken: string): Promise<Written> {
    return this.#send('POST', `${dr}/secondary/operation-token/delete`, changeOf({ operationToken }), { open: true });
  }

  #change<Body>(path: string, body: object, { operationToken, slow }: Authorized & { readonly slow?: true }): Promise<Body> {
    return this.#send('POST', `${dr}/${path}`, body, {
      ...(operationToken !== undefined && { open: true }),
      ...(slow && { slow }),
    });
  }
}
