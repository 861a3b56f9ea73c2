import {
  defaultActivationMs,
  type PrimaryNodes,
  type Registry,
  revoked,
  type StoredRegistry,
  secondaryOfToken,
  tokenIssued,
  tokenUsed,
} from '@transitd/replication';
import type { ClusterAuthority } from '../membership/authority.ts';
import { type ActivationToken, tokenPublicKey, writeActivationToken } from './activation-token.ts';
import { makeActivationCertificate, signSecondary } from './secondary-certificate.ts';

export interface SecondaryDeskOptions {
  readonly registry: Pick<StoredRegistry, 'current' | 'change'>;
  /** Id of this Raft cluster. */
  readonly clusterId: string;
  /** Returns the properties of the replication set. */
  readonly set: () => Pick<ActivationToken, 'set' | 'fenceMs' | 'seal'>;
  /** Returns the authority that signs. Call this only on the active node. @throws StoreError */
  readonly authority: () => Promise<ClusterAuthority>;
  /** Returns the addresses of this cluster's nodes, and the authorities of their certificates. */
  readonly nodes: () => PrimaryNodes;
  /** Milliseconds since 1970, by the clock that decides when tokens of this cluster expire. */
  readonly utcMs: () => number;
}

export interface TokenRequest {
  readonly secondary: string;
  /** 30 minutes by default. */
  readonly ttlMs?: number;
  /** The key for which the token is encrypted, as `makeTokenKey` returns it. */
  readonly publicKey?: string | undefined;
}

/** The request of an activation. */
export interface ActivationRequest {
  /** PKCS #10 in PEM. */
  readonly request: string;
  /** Id of the secondary's Raft cluster. */
  readonly cluster: string;
}

/** The answer to an activation. */
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
    const { registry, clusterId, set, authority, nodes, utcMs } = this.#options;
    const key = publicKey === undefined ? undefined : tokenPublicKey(publicKey);
    const nowMs = utcMs();
    const limits = { secondary, nowMs, ttlMs };
    tokenIssued(registry.current, { ...limits, certificate: '' }); // refuses before a certificate is made
    const made = await makeActivationCertificate(await authority(), { clusterId, secondary, now: new Date(nowMs), ttlMs });
    await registry.change((present) => tokenIssued(present, { ...limits, certificate: made.fingerprint }));
    const content = {
      secondary,
      clusterId,
      ...set(),
      ...nodes(),
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
    const { registry, clusterId, authority, nodes, utcMs } = this.#options;
    const secondary = secondaryOfToken(registry.current, token, utcMs());
    const signed = await signSecondary(await authority(), { clusterId, secondary, request, now: new Date(utcMs()) });
    const used = { cluster, key: signed.keyHash, certificate: signed.fingerprint, issued: signed.certificate };
    let certificate = '';
    await registry.change((present) => {
      const result = tokenUsed(present, token, { ...used, nowMs: utcMs() });
      certificate = result.issued;
      return result.registry;
    });
    return { certificate, ...nodes() };
  }

  /**
   * Ends the rights of a secondary: closes its connection, and refuses its token and its certificate from then on.
   * @throws ReplicationError `unknown_secondary`; StoreError
   */
  revoke(secondary: string): Promise<Registry> {
    return this.#options.registry.change((present) => revoked(present, secondary));
  }
}
