import { X509Certificate } from 'node:crypto';
import { type Cluster, fingerprintOf } from '@transitd/cluster';
import { boolean, dataReply, integer, list, object, RequestError, string, text } from '@transitd/http';
import type { Node, RaftMember } from '@transitd/node';
import { votersOf } from '@transitd/raft-core';
import * as answers from '../operation/answers.ts';
import { type GuardedOperation, guarded, guardedOnSecondary, type Route } from '../operation/operation.ts';
import { shown } from '../operation/shown.ts';
import { requireRaft } from './engine.ts';

interface ServerView {
  readonly member: ReturnType<typeof soleMember>;
  readonly isLeader: boolean;
  readonly isVoter: boolean;
}

const shownServer = shown<ServerView>({
  node_id: [string, ({ member }) => member.name],
  id: [string, ({ member }) => String(member.id)],
  address: [string, ({ member }) => member.clusterAddress],
  leader: [boolean, ({ isLeader }) => isLeader],
  protocol_version: [string, () => '3'],
  voter: [boolean, ({ isVoter }) => isVoter],
  non_voter: [boolean, ({ member }) => member.nonVoter],
});

/** Lists the members of the cluster as this node knows them. Works on every node, also without a leader. */
const configuration = guardedOnSecondary({
  use: 'reads',
  name: 'raft-configuration',
  about: 'Read the cluster members, as this node knows them',
  answers: answers.data(object({ config: object({ index: integer, servers: list(shownServer.schema) }) })),
  capability: 'read',
  where: 'here',
  run: (node) => {
    const raft = requireRaft(node);
    const { leader, conf } = raft.engine.driver.consensus();
    const voters = votersOf(conf);
    const members = raft.cluster?.membershipList.members ?? [];
    const servers = (members.length > 0 ? members : [soleMember(node.config, raft)]).map((member) =>
      shownServer.json({ member, isLeader: leader === member.id, isVoter: voters.includes(member.id) }),
    );
    return dataReply({ config: { index: 0, servers } });
  },
});

/** Returns this node as the only member. For a node without `cluster_addr`, or without a membership list so far. */
const soleMember = (config: Node['config'], { replica }: Pick<RaftMember, 'replica'>) => ({
  id: replica.status().nodeId,
  name: config.node_id,
  clusterAddress: config.cluster_addr ?? '',
  nonVoter: false,
});

/** Makes an operation that changes one member, named by `server_id`. */
const memberChange = (
  change: 'remove' | 'promote' | 'demote',
  name: string,
  about: string,
  ending: Pick<GuardedOperation, 'endsLeadership'> = {},
): GuardedOperation =>
  guardedOnSecondary({
    name,
    about,
    use: 'changes',
    takes: { server_id: text('`id` of the node, or its name', { required: true }) },
    answers: answers.written,
    capability: 'update',
    ...ending,
    run: (node, { values }) => requireCluster(node).operator[change](values.server_id ?? ''),
  });
const removePeer = memberChange('remove', 'raft-remove-peer', 'Remove a member from the cluster', { endsLeadership: true });
const promote = memberChange('promote', 'raft-promote', 'Promote a non-voter to voter');
const demote = memberChange('demote', 'raft-demote', 'Demote a voter to non-voter', { endsLeadership: true });

/**
 * Returns the other members, with the operations that change them.
 * @throws RequestError `invalid_request` on a node without `cluster_addr`, and if the records are in etcd
 */
export function requireCluster(node: Node): Cluster {
  const { cluster } = requireRaft(node);
  if (cluster === undefined)
    throw new RequestError(
      'invalid_request',
      'this node has no cluster_addr in its configuration, so its cluster has no other members',
    );
  return cluster;
}

/** Reads the progress of a rotation of the CA that signs node certificates. */
const authorityStatus = guarded({
  name: 'raft-authority-status',
  about: 'Read the progress of a rotation of the cluster CA, and the members that the rotation waits for',
  answers: answers.data(
    object({ phase: { enum: ['none', 'announced', 'switched'] }, authority: string, waits_for: list(string) }),
  ),
  capability: 'read',
  where: 'leader',
  onSecondary: true, // each cluster of a set has an authority of its own
  run: async ({ node }) => {
    const cluster = requireCluster(node);
    const { phase, waitsFor } = cluster.rotation.status;
    const signing = await cluster.signingAuthority();
    const authority = signing === undefined ? '' : fingerprintOf(new X509Certificate(signing.certificate));
    return dataReply({ phase, authority, waits_for: waitsFor });
  },
});

const rotateAuthority = guarded({
  name: 'raft-authority-rotate',
  about:
    'Start a rotation of the CA that signs node certificates and membership lists; the old CA is dropped once no member needs it',
  answers: answers.written,
  capability: 'update',
  sudo: true,
  onSecondary: true,
  run: ({ node }) => requireCluster(node).rotation.begin(),
});

/** Routes of cluster members and of the CA rotation. Clients send an operation token by POST, also to read the members. */
export const raftRoutes: readonly Route[] = [
  { path: 'sys/storage/raft/configuration', operations: { GET: configuration, POST: configuration } },
  { path: 'sys/storage/raft/remove-peer', operations: { POST: removePeer } },
  { path: 'sys/storage/raft/promote', operations: { POST: promote } },
  { path: 'sys/storage/raft/demote', operations: { POST: demote } },
  { path: 'sys/storage/raft/authority', operations: { GET: authorityStatus } },
  { path: 'sys/storage/raft/authority/rotate', operations: { POST: rotateAuthority } },
];
