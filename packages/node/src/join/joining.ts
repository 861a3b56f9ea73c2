import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { type Barrier, BarrierError, type SealConfig, type SealStatus } from '@transitd/barrier';
import { JoinClient, JoinError, makeRequest, type NodeIdentity, PendingJoin, sendByHttp } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import type { NodeId } from '@transitd/raft-core';
import { newNodeId } from '../storage/data-directory.ts';

/** Where a node asks to be let in. */
export interface JoinTarget {
  /** API addresses of members. */
  readonly leaders: readonly string[];
  /** PEM: what https addresses are checked against instead of the system's authorities. */
  readonly ca?: string;
  readonly nonVoter?: boolean;
  /** A join that fails is tried again until the node is a member. */
  readonly retry?: boolean;
}

/** What the node is, once it was let in. */
export interface JoinedNode {
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly identity: NodeIdentity;
}

/** The id and the key under which a node asks to be let in, kept while it is not known whether a leader has admitted it. */
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

/** Where the configuration says that a node asks; undefined when it names nobody. @throws JoinError */
export async function configuredTarget({ retry_join, retry_join_ca_file }: Config): Promise<JoinTarget | undefined> {
  if (retry_join.length === 0) return undefined;
  if (retry_join_ca_file === undefined) return { leaders: retry_join };
  try {
    return { leaders: retry_join, ca: await readFile(retry_join_ca_file, 'utf8') };
  } catch (error) {
    throw new JoinError('leader_unavailable', `retry_join_ca_file cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** A node on its way into a cluster. With a static seal it can join at once; with Shamir's its shares come first. */
export class Joining {
  readonly #client: JoinClient;
  readonly #nodeId: NodeId;
  readonly #seal: SealConfig;
  readonly #pending: PendingJoin | undefined;
  readonly #abort: AbortController;

  private constructor(parts: {
    client: JoinClient;
    nodeId: NodeId;
    seal: SealConfig;
    pending: PendingJoin | undefined;
    abort: AbortController;
  }) {
    this.#client = parts.client;
    this.#nodeId = parts.nodeId;
    this.#seal = parts.seal;
    this.#pending = parts.pending;
    this.#abort = parts.abort;
  }

  /** Finds a leader that answers, when there are shares to be gathered. @throws JoinError */
  static async prepare({
    config,
    seal,
    apiAddress,
    leaders,
    ca,
    candidate,
    nonVoter = config.non_voter,
  }: JoinTarget & {
    readonly config: Config;
    readonly seal: SealConfig;
    readonly apiAddress: string;
    readonly candidate: Candidate;
  }): Promise<Joining> {
    if (config.cluster_addr === undefined)
      throw new JoinError('join_malformed', 'this node has no cluster_addr in its configuration: its peers could not reach it');
    const abort = new AbortController();
    const { nodeId, key, request } = candidate;
    const joiner = { id: nodeId, name: config.node_id, apiAddress, clusterAddress: config.cluster_addr, nonVoter, request };
    const send = sendByHttp({ signal: abort.signal, ...(ca !== undefined && { ca }) });
    const client = new JoinClient({ joiner, key, leaders, send, randomBytes });
    const pending = seal.type === 'shamir' ? new PendingJoin((await client.prepare()).terms) : undefined;
    return new Joining({ client, nodeId, seal, pending, abort });
  }

  /** Nothing more has to be given. */
  get ready(): boolean {
    return this.#pending === undefined;
  }

  /** Present while shares are gathered: the cluster is initialised, and this node knows so. */
  get sealStatus(): SealStatus | undefined {
    return this.#pending && { ...this.#pending.sealStatus, initialized: true };
  }

  /** Takes a share of the cluster's seal; true when there are enough. @throws BarrierError `invalid_share` */
  addShare(share: Uint8Array): boolean {
    if (this.#pending === undefined) return true;
    return this.#pending.addShare(share);
  }

  reset(): void {
    this.#pending?.reset();
  }

  /** @throws JoinError; the shares given stay, for another attempt */
  async complete(): Promise<JoinedNode> {
    const joined =
      this.#seal.type === 'shamir' && this.#pending !== undefined
        ? await this.#client.complete(this.#pending.shares, this.#pending.terms)
        : await this.#client.complete(this.#seal as Extract<SealConfig, { type: 'static' }>);
    const { clusterId, key, certificate, authority, membersAtJoin } = joined;
    return { clusterId, nodeId: this.#nodeId, identity: { key, certificate, authority, membersAtJoin } };
  }

  /** Gives the barrier of the new member the shares that were given here, as soon as its records have arrived. @throws BarrierError, StoreError */
  async unseal(barrier: Barrier): Promise<void> {
    const shares = this.#pending?.shares.given ?? [];
    if (shares.length === 0) return;
    for (const endMs = performance.now() + recordsWithinMs; ; await pause(againMs)) {
      try {
        for (const share of barrier.state.initialized ? shares : []) await barrier.unseal(share);
        if (!barrier.state.sealed || performance.now() > endMs) return;
      } catch (error) {
        // A node that follows the log from its beginning may have the seal of earlier shares before the one that holds.
        if (!(error instanceof BarrierError) || performance.now() > endMs) throw error;
      }
    }
  }

  close(): void {
    this.#abort.abort();
    this.reset();
  }
}

/** How long a node that has just joined waits for the records that its shares unseal; after that they are to be given again. */
const recordsWithinMs = 10_000;
const againMs = 50;
