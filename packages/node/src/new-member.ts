import { ClusterMember, type ClusterMemberParts } from './cluster-member.ts';
import { EtcdMember } from './etcd-member.ts';
import type { NodeMember } from './member.ts';

/** Returns the member for the configured engine, not started. */
export function newMember(parts: ClusterMemberParts): NodeMember {
  const { storage } = parts.config;
  return storage.type === 'etcd' ? new EtcdMember({ ...parts, storage }) : new ClusterMember(parts);
}
