import { listedNode, type Membership } from '../../src/membership/membership.ts';
import { ClusterClient, type ClusterClientOptions } from '../../src/transport/cluster-client.ts';
import { ClusterListener, type ClusterListenerOptions } from '../../src/transport/cluster-listener.ts';
import { memberAt, testCluster } from '../credentials.ts';

/** The cluster port of an active node with id 1, and the client of a standby with id 2 that knows it. */
export async function activeAndStandby(
  port: Pick<ClusterListenerOptions, 'calls' | 'forwarded'> & Partial<ClusterListenerOptions>,
  client: Partial<ClusterClientOptions> = {},
): Promise<{ readonly listener: ClusterListener; readonly client: ClusterClient }> {
  const cluster = await testCluster();
  const [active, standby] = await Promise.all([cluster.node(1), cluster.node(2)]);
  let membership: Membership = { members: [], removed: [] };
  const listener = new ClusterListener({
    identity: () => active.identity,
    memberState: (fingerprint) => listedNode(membership, fingerprint),
    raft: () => undefined,
    judge: () => 'in order',
    onFault: () => undefined,
    ...port,
  });
  const listening = await listener.listen({ host: '127.0.0.1', port: 0 });
  membership = { members: [memberAt(active, listening), memberAt(standby, 1)], removed: [] };
  return {
    listener,
    client: new ClusterClient({
      identity: () => standby.identity,
      incarnation: () => ({ number: 1, nonce: 'a'.repeat(32) }),
      member: (id) => membership.members.find((one) => one.id === id),
      ...client,
    }),
  };
}
