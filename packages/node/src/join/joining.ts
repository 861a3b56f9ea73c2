import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Barrier,
  BarrierError,
  type SealConfig,
  type SealStatus,
  type SealTerms,
  ShareCollection,
  sealTypesOf,
} from '@transitd/barrier';
import { ClusterError, JoinClient, type JoinedCluster, makeRequest, sendByHttp } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import { readNamedFile, reasonOf } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { supportedLevels } from '@transitd/storage-fsm';
import { newNodeId } from '../storage/data-directory.ts';

export interface JoinTarget {
  /** API addresses of members. */
  readonly leaders: readonly string[];
  /** Certificates (PEM) of the authorities to trust for https addresses; those of the system when absent. */
  readonly ca?: string;
  readonly nonVoter?: boolean;
  /** Repeat a failed join until the node is a member. */
  readonly retry?: boolean;
}

/** Id and key of a node that asks to join. They stay the same until the node knows whether a leader has admitted it. */
export interface Candidate {
  readonly nodeId: NodeId;
  /** PEM. */
  readonly key: string;
  /** PEM, PKCS #10. */
  readonly request: string;
}

export async function newCandidate(): Promise<Candidate> {
  const nodeId = newNodeId();
  return { nodeId, ...(await makeRequest(nodeId)) };
}

/** Returns the target in `retry_join`; undefined when the configuration has none. @throws ClusterError */
export function configuredTarget({ retry_join, retry_join_ca_file }: Config): JoinTarget | undefined {
  if (retry_join.length === 0) return undefined;
  if (retry_join_ca_file === undefined) return { leaders: retry_join };
  try {
    return { leaders: retry_join, ca: readNamedFile('retry_join_ca_file', retry_join_ca_file).toString() };
  } catch (error) {
    throw new ClusterError('leader_unavailable', reasonOf(error));
  }
}

/**
 * How the joining node proves that it can open the seal of the cluster: by the seal's key, or by shares that are given to it. The shares
 * never leave it. It collects them by the terms that a leader reported: the key from them opens the wrapped secret only if the terms are
 * true.
 */
type Proof =
  | { readonly kind: 'key'; readonly seal: SealConfig }
  | { readonly kind: 'shares'; readonly terms: SealTerms; readonly shares: ShareCollection };

const withoutShares = (terms: SealTerms): Proof => ({
  ...{ kind: 'shares', terms },
  shares: new ShareCollection(terms.threshold, terms.shareHashes),
});

/** One attempt to join one cluster. With a Shamir seal it needs the shares first; otherwise it can be completed at once. */
export class Joining {
  readonly #client: JoinClient;
  #proof: Proof;
  readonly #abort: AbortController;
  /** Aborted when this attempt closes or the node stops. */
  readonly #ending: AbortSignal;

  private constructor(
    client: JoinClient,
    proof: Proof,
    { abort, ending }: { readonly abort: AbortController; readonly ending: AbortSignal },
  ) {
    this.#client = client;
    this.#proof = proof;
    this.#abort = abort;
    this.#ending = ending;
  }

  /**
   * Prepares a join. If the seal may be Shamir's, asks a leader for its terms, which the shares must fit.
   * @param stopping - aborted when the node stops
   * @throws ClusterError
   */
  static async prepare({
    config,
    seal,
    apiAddress,
    leaders,
    ca,
    candidate,
    stopping,
    nonVoter = config.non_voter,
  }: JoinTarget & {
    readonly config: Config;
    readonly seal: SealConfig;
    readonly apiAddress: string;
    readonly candidate: Candidate;
    readonly stopping: AbortSignal;
  }): Promise<Joining> {
    if (config.cluster_addr === undefined)
      throw new ClusterError(
        'join_malformed',
        'this node has no cluster_addr in its configuration, so other nodes could not connect to it: set it and restart',
      );
    const abort = new AbortController();
    const ending = AbortSignal.any([abort.signal, stopping]);
    const { nodeId, key, request } = candidate;
    const joiner = {
      id: nodeId,
      name: config.node_id,
      apiAddress,
      clusterAddress: config.cluster_addr,
      nonVoter,
      levels: supportedLevels,
      request,
    };
    const send = sendByHttp({ signal: ending, ...(ca !== undefined && { ca }) });
    const client = new JoinClient({ joiner, key, leaders, send, randomBytes });
    const types = sealTypesOf(seal);
    const terms = types.includes('shamir') ? await client.prepare(types) : undefined;
    const proof: Proof = terms?.type === 'shamir' ? withoutShares(terms) : { kind: 'key', seal };
    return new Joining(client, proof, { abort, ending });
  }

  /** Whether the join can be completed without shares. */
  get ready(): boolean {
    return this.#proof.kind === 'key';
  }

  /** The seal of the cluster while shares are collected; the cluster is known to be initialized. */
  get sealStatus(): SealStatus | undefined {
    if (this.#proof.kind === 'key') return undefined;
    const { terms, shares } = this.#proof;
    const { progress } = shares;
    return {
      ...{ type: terms.type, initialized: true, sealed: true, t: terms.threshold, n: terms.shares },
      ...{ progress, nonce: progress === 0 ? '' : shares.nonce, recoverySeal: false, migration: false },
    };
  }

  /** Accepts a share of the cluster's seal; returns whether there are enough. @throws BarrierError `invalid_share` */
  addShare(share: Uint8Array): boolean {
    if (this.#proof.kind === 'key') return true;
    this.#proof.shares.add(share);
    return this.#proof.shares.complete;
  }

  /** Wipes the shares given so far. */
  reset(): void {
    if (this.#proof.kind === 'key') return;
    this.#proof.shares.wipe();
    this.#proof = withoutShares(this.#proof.terms);
  }

  /** Joins. If this fails, the shares are kept for another attempt. @throws ClusterError */
  complete(): Promise<JoinedCluster> {
    const proof = this.#proof;
    return proof.kind === 'key' ? this.#client.complete(proof.seal) : this.#client.complete(proof.shares, proof.terms);
  }

  /**
   * Unseals the new member with the shares of the join, once it has received the cluster's records.
   * @throws BarrierError, StoreError; another error when the node stops
   */
  async unseal(barrier: Barrier): Promise<void> {
    const shares = this.#proof.kind === 'shares' ? this.#proof.shares.given : [];
    if (shares.length === 0) return;
    for (const endMs = performance.now() + recordsWithinMs; ; await pause(retryMs, undefined, { signal: this.#ending })) {
      try {
        for (const share of barrier.state.initialized ? shares : []) {
          this.#ending.throwIfAborted(); // a barrier that was closed must not get its keys again
          await barrier.unseal(share);
        }
        if (!barrier.state.sealed || performance.now() > endMs) return;
      } catch (error) {
        // While the node replays the log from its beginning, it may first find an older seal, which other shares open.
        if (!(error instanceof BarrierError) || performance.now() > endMs) throw error;
      }
    }
  }

  close(): void {
    this.#abort.abort();
    this.reset();
  }
}

/** How long a new member waits for the records that its shares unseal. After that the shares have to be given again. */
const recordsWithinMs = 10_000;
const retryMs = 50;
