import { RequestError } from '@transitd/http';
import type { Node, RaftMember } from '@transitd/node';

/**
 * Returns this node as a member of a cluster whose nodes keep the records themselves.
 * @throws RequestError `invalid_request` if they are in etcd; BarrierError `not_initialized`
 */
export function requireRaft(node: Node): RaftMember {
  refuseEtcd(node);
  const member = node.requireMember();
  if (member.kind !== 'raft') throw new TypeError('a member is of the configured engine');
  return member;
}

/** @throws RequestError `invalid_request` if the records of this node's cluster are in etcd, whether it is a member or not */
export function refuseEtcd({ config }: Pick<Node, 'config'>): void {
  if (config.storage.type === 'etcd')
    throw new RequestError(
      'invalid_request',
      'the records of this cluster are in etcd: it has no Raft members, no joins, and no replication between clusters',
    );
}
