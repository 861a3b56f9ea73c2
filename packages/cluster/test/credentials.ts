import { X509Certificate } from 'node:crypto';
import type { NodeId } from '@transitd/raft-core';
import { type ClusterAuthority, makeAuthority, makeRequest, signRequest } from '../src/membership/authority.ts';
import { fingerprintOf } from '../src/membership/certificate.ts';
import type { NodeIdentity } from '../src/membership/identity.ts';
import type { Member } from '../src/membership/membership.ts';

export const clusterId = '6b7c6f0e-2f0b-4c34-9d6b-0f8c1d2e3a4b';

/** A node with its identity and certificate. */
export interface TestNode {
  readonly id: NodeId;
  readonly identity: NodeIdentity;
  readonly certificate: string;
}

export interface TestCluster {
  readonly authority: ClusterAuthority;
  /** @param signed - false content for the authority to sign */
  node(id: NodeId, signed?: { readonly clusterId?: string; readonly now?: Date }): Promise<TestNode>;
}

export async function testCluster(): Promise<TestCluster> {
  const authority = await makeAuthority(clusterId, new Date());
  return {
    authority,
    node: async (id, signed) => {
      const { key, request } = await makeRequest(id);
      const certificate = await signRequest(authority, { request, nodeId: id, clusterId, now: new Date(), ...signed });
      const identity = { key, certificate, authority: authority.certificate, membersAtJoin: [] };
      return { id, identity, certificate: fingerprintOf(new X509Certificate(certificate)) };
    },
  };
}

export const memberAt = ({ id, certificate }: TestNode, port: number, host = '127.0.0.1'): Member => ({
  id,
  name: `node-${id}`,
  apiAddress: 'http://127.0.0.1:8200',
  clusterAddress: `${host}:${port}`,
  certificate,
  nonVoter: false,
  levels: { oldest: 1, newest: 1 },
});
