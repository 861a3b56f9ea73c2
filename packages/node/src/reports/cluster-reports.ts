import type { Engine, Peers } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import type { NodeId } from '@transitd/raft-core';
import { DataDisk } from './data-disk.ts';
import type { ClusterView, MemberView, NodeReport } from './node-report.ts';
import { ReportStreams } from './report-streams.ts';

export interface ClusterReportsParts {
  readonly config: Config;
  readonly apiAddress: () => string;
  readonly own: () => Promise<NodeReport>;
  readonly peers: () => Pick<Peers, 'membershipList' | 'reportOf'> | undefined;
  readonly engine: () => Pick<Engine, 'status'> | undefined;
  /** The voters, as this node knows them; undefined if the engine has none. */
  readonly voters: () => readonly NodeId[] | undefined;
}

/** How long a member may take to report. A member that is down must not hold up the view of the others. */
const reportMsMax = 1000;
/** How long a view is shared: many viewers cost the members no more calls than one. */
const sharedForMs = 500;

/**
 * The reports of all members, asked by this node. Works on every unsealed node, with or without a leader. Callers within half a second
 * share one round of calls.
 */
export class ClusterReports {
  readonly disk: DataDisk;
  readonly streams = new ReportStreams(() => this.view());
  readonly #parts: ClusterReportsParts;
  #shared: { readonly view: Promise<ClusterView>; readonly atMs: number } | undefined;

  constructor(parts: ClusterReportsParts) {
    this.#parts = parts;
    this.disk = new DataDisk(parts.config.data_dir);
  }

  /** Asks every member for its report; at most half a second old. */
  view(): Promise<ClusterView> {
    const nowMs = performance.now();
    if (this.#shared === undefined || nowMs - this.#shared.atMs >= sharedForMs) this.#shared = { view: this.#ask(), atMs: nowMs };
    return this.#shared.view;
  }

  async #ask(): Promise<ClusterView> {
    const { config, peers, engine } = this.#parts;
    const voters = this.#parts.voters() ?? [];
    const ownId = engine()?.status().nodeId ?? 0;
    const listed = peers()?.membershipList.members ?? [];
    const nodes = await Promise.all(
      listed.some(({ id }) => id === ownId)
        ? listed.map(async ({ id, name, apiAddress, clusterAddress }): Promise<MemberView> => {
            const view = { name, id: String(id), api_address: apiAddress, cluster_address: clusterAddress };
            return { ...view, voter: voters.includes(id), ...(await this.#reportOf({ id, name }, ownId)) };
          })
        : [this.#soleMember(ownId)],
    );
    return { asked: config.node_id, nodes };
  }

  async #reportOf(
    { id, name }: { readonly id: NodeId; readonly name: string },
    ownId: NodeId,
  ): Promise<Pick<MemberView, 'error' | 'report'>> {
    const { own } = this.#parts;
    const peers = this.#parts.peers();
    if (id === ownId || peers === undefined) return { report: await own() };
    try {
      return { report: await peers.reportOf(id, reportMsMax) };
    } catch (error) {
      return { error: reasonOf(error).replaceAll(`node ${id}`, name) };
    }
  }

  /** For a node without `cluster_addr`, without a membership list so far, or removed from its cluster. */
  async #soleMember(id: NodeId): Promise<MemberView> {
    const { config, apiAddress, own } = this.#parts;
    const addresses = { api_address: apiAddress(), cluster_address: config.cluster_addr ?? '' };
    return { name: config.node_id, id: String(id), ...addresses, voter: true, report: await own() };
  }
}

/** Returns the message of the innermost cause: the outer one only says which call failed. */
const reasonOf = (error: unknown): string =>
  error instanceof Error ? (error.cause instanceof Error ? reasonOf(error.cause) : error.message) : String(error);
