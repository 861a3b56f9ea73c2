import { RequestError } from '@transitd/http';
import type { Node } from '@transitd/node';

/** Requires that the nodes of this cluster keep its records themselves. @throws RequestError `invalid_request` if etcd does */
export function requireRaft({ config }: Pick<Node, 'config'>): void {
  if (config.storage.type === 'etcd')
    throw new RequestError(
      'invalid_request',
      'the records of this cluster are in etcd: it has no Raft members, no joins, and no replication between clusters',
    );
}
