import { listedNode, type Membership } from '../../src/membership/membership.ts';
import type { ForwardedRequests } from '../../src/ports/cluster-host.ts';
import { ClusterClient, type ClusterClientOptions } from '../../src/transport/cluster-client.ts';
import { ClusterListener, type ClusterListenerOptions } from '../../src/transport/cluster-listener.ts';
import { memberAt, testCluster } from '../credentials.ts';

/** The cluster port of an active node with id 1, and the client of a standby with id 2 that knows it. */
export async function activeAndStandby(
  port: Pick<ClusterListenerOptions, 'calls'> & {
    readonly forwarded: ForwardedRequests['handle'];
    readonly forwardedByUnsealed?: boolean;
  },
  client: Partial<ClusterClientOptions> = {},
): Promise<{ readonly listener: ClusterListener; readonly client: ClusterClient }> {
  const cluster = await testCluster();
  const [active, standby] = await Promise.all([cluster.node(1), cluster.node(2)]);
  let membership: Membership = { members: [], removed: [] };
  const listener = new ClusterListener({
    members: {
      requireIdentity: () => active.identity,
      memberState: (fingerprint) => listedNode(membership, fingerprint),
    },
    raft: { accept: () => undefined, judge: () => 'in order' },
    onFault: () => undefined,
    ...port,
    forwarded: { handle: port.forwarded },
  });
  const listening = await listener.listen({ host: '127.0.0.1', port: 0 });
  membership = { members: [memberAt(active, listening), memberAt(standby, 1)], removed: [] };
  return {
    listener,
    client: new ClusterClient({
      members: {
        requireIdentity: () => standby.identity,
        member: (id) => membership.members.find((one) => one.id === id),
      },
      incarnation: { number: 1, nonce: 'a'.repeat(32) },
      ...client,
    }),
  };
}
