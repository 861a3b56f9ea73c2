import { createPrivateKey, sign, verify, X509Certificate } from 'node:crypto';
import type { NodeId } from '@transitd/raft-core';
import { z } from 'zod';
import type { ClusterAuthority } from '../membership/authority.ts';
import { fingerprintOf, type NodeName, nameIn } from '../membership/certificate.ts';
import type { NodeIdentity } from '../membership/identity.ts';
import { levelRange } from '../membership/member-levels.ts';
import { type Member, parseMembers } from '../membership/membership.ts';

/** The statements of a node about itself, in the record with which it makes itself known. */
type NodeFacts = Pick<Member, 'name' | 'apiAddress' | 'clusterAddress' | 'levels'>;

const format = 1;
const text = z.string().max(256);
const facts = z.object({
  format: z.literal(format),
  name: text,
  apiAddress: text,
  clusterAddress: text,
  levels: levelRange,
});
const record = z.object({ facts: z.string().max(4096), certificate: z.string().max(4096), signature: z.base64() });

/** Returns the record of a node, signed with the key of its certificate. */
export function encodeNodeRecord({ key, certificate }: Pick<NodeIdentity, 'key' | 'certificate'>, about: NodeFacts): Uint8Array {
  const signed = JSON.stringify({ format, ...about });
  const signature = sign('sha256', Buffer.from(signed), createPrivateKey(key)).toString('base64');
  return Buffer.from(JSON.stringify({ facts: signed, certificate, signature }));
}

/**
 * Returns the node that wrote a record. Returns undefined for every record that a node of this cluster cannot have written: the store that
 * keeps the records is not trusted, and requests with tokens are forwarded to the address in the record.
 */
export function readNodeRecord(
  bytes: Uint8Array,
  { nodeId, clusterId }: NodeName,
  authority: Pick<ClusterAuthority, 'certificate'>,
): Member | undefined {
  try {
    const { facts: signed, certificate: pem, signature } = record.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
    const certificate = new X509Certificate(pem);
    const named = nameIn(certificate, new X509Certificate(authority.certificate));
    if (named?.nodeId !== nodeId || named.clusterId !== clusterId) return undefined;
    if (!verify('sha256', Buffer.from(signed), certificate.publicKey, Buffer.from(signature, 'base64'))) return undefined;
    return nodeOf(nodeId, fingerprintOf(certificate), facts.parse(JSON.parse(signed)));
  } catch {
    return undefined; // malformed
  }
}

function nodeOf(id: NodeId, certificate: string, { format: _format, ...about }: z.infer<typeof facts>): Member | undefined {
  return parseMembers([{ id, ...about, certificate, nonVoter: false }])[0];
}
