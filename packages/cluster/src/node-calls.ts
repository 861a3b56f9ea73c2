// The calls that each node answers to each other one, whichever engine has its records.

import { bytesOf } from '@transitd/process';
import type { ConfirmOutcome, Driver, LogIndex, NodeId } from '@transitd/raft-core';
import { fieldsIn, type Replica } from '@transitd/storage-fsm';
import type { ReportSource } from './ports/cluster-host.ts';
import { reachedIndex } from './standbys/reached-state.ts';
import type { ClusterHandler } from './transport/cluster-call.ts';
import type { ClusterClient } from './transport/cluster-client.ts';

/** How long a node waits for an entry that it is asked to confirm. */
export const confirmWithinMs = 1000;

const confirmPath = '/cluster/confirm';
const reportPath = '/cluster/report';
const usagePath = '/cluster/usage';
const recordUsagePath = '/cluster/usage/record';

/** Most bytes of a report on the uses of keys. */
const usageBytesMax = 4 * 1024 * 1024;

/** Returns the handlers of these calls, by method and path. */
export const nodeCalls = (
  replica: Pick<Replica, 'status' | 'watch'>,
  reports: ReportSource,
): Readonly<Record<string, ClusterHandler>> => ({
  [`POST ${confirmPath}`]: async ({ body }) => {
    const { index } = fieldsIn(body);
    if (typeof index !== 'number') return { status: 400, json: {} };
    await reachedIndex(replica, index, confirmWithinMs);
    return { status: 200, json: { appliedIndex: replica.status().appliedIndex } };
  },

  [`POST ${reportPath}`]: async () => ({ status: 200, json: await reports.report() }),

  // Only for the active node: it confirms that uses are recorded, and this node forgets them.
  [`POST ${usagePath}`]: async ({ from, body }) =>
    from === replica.status().leader ? { status: 200, json: await reports.usage(fieldsIn(body)) } : { status: 403, json: {} },

  // By a node that is about to stop.
  [`POST ${recordUsagePath}`]: async () => {
    await reports.recordUsage();
    return { status: 200, json: {} };
  },
});

/** Makes these calls. */
export class PeerCalls {
  readonly #client: Pick<ClusterClient, 'post' | 'request'>;

  constructor(client: Pick<ClusterClient, 'post' | 'request'>) {
    this.#client = client;
  }

  /** Asks another node to confirm that it has applied `index`; returns its applied index. @throws ClusterCallError, Error if it refuses */
  async confirm(id: NodeId, index: LogIndex, timeoutMs: number): Promise<LogIndex> {
    const { status, json } = await this.#client.post(id, confirmPath, { json: { index }, timeoutMs });
    if (status !== 200) throw new Error(`node ${id} did not confirm: status ${status}`);
    return (json as { appliedIndex: LogIndex }).appliedIndex;
  }

  /** Asks another node for its report on itself. @throws ClusterCallError, Error if the node refuses */
  async report(id: NodeId, timeoutMs: number): Promise<object> {
    const { status, json } = await this.#client.post(id, reportPath, { json: {}, timeoutMs });
    if (status !== 200 || typeof json !== 'object' || json === null) throw new Error(`it answered with status ${status}`);
    return json;
  }

  /**
   * Asks another node for the uses of keys that it has counted; `unsupported` if its release does not count.
   * @throws ClusterCallError, Error if the node refuses
   */
  async usage(id: NodeId, question: object, timeoutMs: number): Promise<unknown> {
    const body = Buffer.from(JSON.stringify(question));
    const headers = { 'Content-Type': 'application/json' };
    const answer = await this.#client.request(id, { method: 'POST', path: usagePath, headers, body, timeoutMs });
    const bytes = await bytesOf(answer.body, usageBytesMax);
    if (answer.status === 404) return 'unsupported';
    if (answer.status !== 200) throw new Error(`it answered with status ${answer.status}`);
    return JSON.parse(bytes.toString('utf8'));
  }

  /** Asks the active node to record the uses of keys now. @throws ClusterCallError */
  async recordUsage(id: NodeId, timeoutMs: number): Promise<void> {
    await this.#client.post(id, recordUsagePath, { json: {}, timeoutMs });
  }
}

/** Asks a node to confirm by a message on the Raft connection, instead of a call. @throws Error if the node does not answer */
export async function askByMessage(driver: Pick<Driver<unknown>, 'confirm'>, id: NodeId, index: LogIndex): Promise<LogIndex> {
  const outcome = await new Promise<ConfirmOutcome>((resolve) => driver.confirm(id, index, resolve));
  if (outcome.kind !== 'applied') throw new Error(`node ${id} did not confirm: ${outcome.reason}`);
  return outcome.index;
}
