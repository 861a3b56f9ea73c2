import type { ClusterAuthority } from '@transitd/cluster';
import type { RecordClock } from '@transitd/process';
import { StoreError } from '@transitd/storage-fsm';
import { defaultActivationMs, type Registry, revoked, secondaryOfToken, tokenIssued, tokenUsed } from '../registry/registry.ts';
import type { StoredRegistry } from '../registry/stored-registry.ts';
import type { PrimaryNodes } from '../stream/frame.ts';
import { type ActivationToken, tokenPublicKey, writeActivationToken } from './activation-token.ts';
import { makeActivationCertificate, signSecondary } from './secondary-certificate.ts';

interface SecondaryDeskOptions {
  readonly registry: Pick<StoredRegistry, 'current' | 'change'>;
  /** Id of this Raft cluster. */
  readonly clusterId: string;
  readonly cluster: {
    /** Returns the authority that signs, on the active node; undefined if it has none yet. @throws StoreError */
    signingAuthority(): Promise<ClusterAuthority | undefined>;
  };
  readonly set: {
    /** The replication set as a new secondary has to know it. @throws ReplicationError `wrong_mode` unless this cluster is its primary */
    readonly offered: Pick<ActivationToken, 'set' | 'fenceMs' | 'seal'>;
    nodes(): PrimaryNodes;
  };
  readonly clock: Pick<RecordClock, 'dueMs' | 'utcMs'>;
}

export interface TokenRequest {
  readonly secondary: string;
  /** 30 minutes by default. */
  readonly ttlMs?: number | undefined;
  /** The key for which the token is encrypted, as `makeTokenKey` returns it. */
  readonly publicKey?: string | undefined;
}

export interface ActivationRequest {
  /** PKCS #10 in PEM. */
  readonly request: string;
  /** Id of the secondary's Raft cluster. */
  readonly cluster: string;
}

export interface IssuedCertificate extends PrimaryNodes {
  /** PEM. */
  readonly certificate: string;
}

/** The primary's side of activations. Commits every change before it answers. */
export class SecondaryDesk {
  readonly #options: SecondaryDeskOptions;

  constructor(options: SecondaryDeskOptions) {
    this.#options = options;
  }

  /**
   * Issues an activation token; returns its text, which is a secret.
   * @throws ReplicationError `malformed_id`, `malformed_ttl`, `too_many`; ReplicationError `malformed_key`; StoreError
   */
  async issueToken({ secondary, ttlMs = defaultActivationMs, publicKey }: TokenRequest): Promise<string> {
    const { registry, clusterId, set, clock } = this.#options;
    const key = publicKey === undefined ? undefined : tokenPublicKey(publicKey);
    const nowMs = clock.dueMs();
    const limits = { secondary, nowMs, ttlMs };
    tokenIssued(registry.current, { ...limits, certificate: '' }); // refuses before a certificate is made
    const made = await makeActivationCertificate(await this.#authority(), { clusterId, secondary, now: new Date(nowMs), ttlMs });
    await registry.change((present) => tokenIssued(present, { ...limits, certificate: made.fingerprint }));
    const content = {
      secondary,
      clusterId,
      ...set.offered,
      ...set.nodes(),
      key: made.key,
      certificate: made.certificate,
      expiresMs: nowMs + ttlMs,
    };
    return writeActivationToken(content, key);
  }

  /**
   * Exchanges a token for a certificate. Until the first hello, the same key may ask again and gets the same certificate.
   * @param token - fingerprint of the certificate in the token
   * @throws ReplicationError `unknown_token`, `used`, `expired`, `revoked`, `replaced`, `name_taken`; ClusterError; StoreError
   */
  async activate(token: string, { request, cluster }: ActivationRequest): Promise<IssuedCertificate> {
    const { registry, clusterId, set, clock } = this.#options;
    const secondary = secondaryOfToken(registry.current, token, clock.utcMs());
    const signed = await signSecondary(await this.#authority(), { clusterId, secondary, request, now: new Date(clock.dueMs()) });
    const used = { cluster, key: signed.keyHash, certificate: signed.fingerprint, issued: signed.certificate };
    let certificate = '';
    await registry.change((present) => {
      const result = tokenUsed(present, token, { ...used, nowMs: clock.dueMs() });
      certificate = result.issued;
      return result.registry;
    });
    return { certificate, ...set.nodes() };
  }

  /**
   * Ends the rights of a secondary: closes its connection, and refuses its token and its certificate from then on.
   * @throws ReplicationError `unknown_secondary`; StoreError
   */
  revoke(secondary: string): Promise<Registry> {
    return this.#options.registry.change((present) => revoked(present, secondary));
  }

  async #authority(): Promise<ClusterAuthority> {
    const authority = await this.#options.cluster.signingAuthority();
    if (authority === undefined) throw new StoreError('not_leader', 'this cluster has no authority yet');
    return authority;
  }
}
