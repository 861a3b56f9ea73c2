import type { OutsideEngine, Peers, Storage } from '@transitd/cluster';
import { type NodeId, votersOf } from '@transitd/raft-core';
import type { ClusterView, MemberView, NodeReporter, ReportingHost } from './node-report.ts';
import { ReportStreams } from './report-streams.ts';

interface AskingMember {
  readonly reporter: Pick<NodeReporter, 'report'>;
  readonly engine: Storage | OutsideEngine;
  readonly peers: Pick<Peers, 'calls' | 'membershipList'>;
}

type AskingHost = Pick<ReportingHost, 'config'> & { readonly api: { readonly url: string } };

/** How long a member may take to report. A member that is down must not hold up the view of the others. */
const reportMsMax = 1000;
/** How long a view is shared: many viewers cost the members no more calls than one. */
const sharedForMs = 500;

/**
 * The reports of all members, asked by this node. Works on every unsealed node, with or without a leader. Callers within half a second
 * share one round of calls.
 */
export class ClusterReports {
  readonly streams = new ReportStreams(this);
  readonly #member: AskingMember;
  readonly #host: AskingHost;
  #shared: { readonly view: Promise<ClusterView>; readonly atMs: number } | undefined;

  constructor(member: AskingMember, host: AskingHost) {
    this.#member = member;
    this.#host = host;
  }

  /** Asks every member for its report; at most half a second old. */
  view(): Promise<ClusterView> {
    const nowMs = performance.now();
    if (this.#shared === undefined || nowMs - this.#shared.atMs >= sharedForMs) this.#shared = { view: this.#ask(), atMs: nowMs };
    return this.#shared.view;
  }

  async #ask(): Promise<ClusterView> {
    const { engine, peers } = this.#member;
    const voters = engine.kind === 'raft' ? votersOf(engine.driver.consensus().conf) : [];
    const ownId = engine.status().nodeId;
    const listed = peers.membershipList.members;
    const nodes = await Promise.all(
      listed.some(({ id }) => id === ownId)
        ? listed.map(async ({ id, name, apiAddress, clusterAddress }): Promise<MemberView> => {
            const view = { name, id: String(id), api_address: apiAddress, cluster_address: clusterAddress };
            return { ...view, voter: voters.includes(id), ...(await this.#reportOf({ id, name }, ownId)) };
          })
        : [this.#soleMember(ownId)],
    );
    return { asked: this.#host.config.node_id, nodes };
  }

  async #reportOf(
    { id, name }: { readonly id: NodeId; readonly name: string },
    ownId: NodeId,
  ): Promise<Pick<MemberView, 'error' | 'report'>> {
    const { reporter, peers } = this.#member;
    if (id === ownId) return { report: await reporter.report() };
    try {
      return { report: await peers.calls.report(id, reportMsMax) };
    } catch (error) {
      return { error: reasonOf(error).replaceAll(`node ${id}`, name) };
    }
  }

  /** For a node without `cluster_addr`, without a membership list so far, or removed from its cluster. */
  async #soleMember(id: NodeId): Promise<MemberView> {
    const { config, api } = this.#host;
    const addresses = { api_address: api.url, cluster_address: config.cluster_addr ?? '' };
    return { name: config.node_id, id: String(id), ...addresses, voter: true, report: await this.#member.reporter.report() };
  }
}

/** Returns the message of the innermost cause: the outer one only says which call failed. */
const reasonOf = (error: unknown): string =>
  error instanceof Error ? (error.cause instanceof Error ? reasonOf(error.cause) : error.message) : String(error);
