// Snapshots of a cluster through its API.
import { expect } from 'chai';
import { Answer } from '../../process/live-server.ts';
import type { LiveCluster } from './live-cluster.ts';
import type { LiveNode } from './live-node.ts';
import { isRefusedForNow } from './outcome.ts';
import { until } from './until.ts';

export const snapshotPath = 'sys/storage/raft/snapshot';

export function takeSnapshot({ rootToken }: LiveCluster, node: LiveNode): Promise<Buffer> {
  return until(`${node.name} gives a snapshot`, async () => {
    const response = await fetch(`${node.apiAddress}/v1/${snapshotPath}`, { headers: { 'X-Service-Token': rootToken } });
    const bytes = Buffer.from(await response.arrayBuffer());
    if (response.status === 503) return false;
    if (response.status !== 200) throw new Error(`${response.status} ${bytes}`);
    expect(response.headers.get('content-type')).to.equal('application/gzip');
    return bytes;
  });
}

/**
 * Sends a snapshot. A standby that is cut off from the active node for a moment, as on a busy machine, cannot tell what became of it: then
 * it is sent again, which is the same restore, or the same refusal.
 */
export function sendSnapshot(
  node: LiveNode,
  snapshot: Uint8Array,
  { token, to = snapshotPath }: { readonly token: string; readonly to?: string },
): Promise<Answer> {
  return until(`${node.name} answers a snapshot`, async () => {
    const response = await fetch(`${node.apiAddress}/v1/${to}`, {
      method: 'POST',
      headers: { 'X-Service-Token': token },
      body: Buffer.from(snapshot),
      signal: AbortSignal.timeout(240_000),
    });
    const answer = new Answer(response.status, response.headers, await response.text());
    return answer.status !== 504 && !isRefusedForNow(answer) && answer;
  });
}
