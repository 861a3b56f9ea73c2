import { dataReply, RequestError } from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { type GuardedOperation, guardedOnSecondary, type Route } from '../operation/operation.ts';

const binary = { contentMediaType: 'application/gzip' };

/** Takes a snapshot on the active node, so that the snapshot contains every write that was acknowledged before the request. */
const take = guardedOnSecondary({
  use: 'reads',
  name: 'raft-snapshot',
  about: 'Take a snapshot of the whole cluster',
  answers: answers.content('application/gzip', binary),
  capability: 'read',
  where: 'leader',
  isSlow: true,
  run: async (node) => ({
    status: 200,
    headers: { 'Content-Type': 'application/gzip' },
    stream: await node.requireMember().snapshots.take(),
  }),
});

const revived =
  'all changes since the snapshot are undone: tokens revoked since then are valid again, and old policies and key versions are back';
const sealedNow =
  'the snapshot was made under another root key: every node is sealed until it is given the keys of that snapshot';

const path = 'sys/storage/raft/snapshot';

const restore = (name: string, { proved }: { readonly proved: boolean }): GuardedOperation => ({
  name,
  access: 'token',
  about: proved ? 'Restore a snapshot' : 'Restore a snapshot that was taken under another root key',
  ...(!proved && { sameAs: () => [path] }), // it restores everything that the other one does
  body: binary,
  answers: answers.warned,
  capability: 'update',
  sudo: true,
  streamsBody: true,
  isSlow: true,
  run: async ({ node }, { bodyStream }) => {
    if (bodyStream === undefined) throw new RequestError('invalid_request', 'the request body must be a snapshot');
    const { sealed } = await node.requireMember().snapshots.restore(bodyStream, { proved });
    return dataReply(null, sealed ? [revived, sealedNow] : [revived]);
  },
});

/** Routes that take and restore snapshots, on every engine. Their paths are those that clients of Vault know. */
export const raftSnapshotRoutes: readonly Route[] = [
  {
    path,
    operations: { GET: take, POST: restore('raft-snapshot-restore', { proved: true }) },
  },
  { path: `${path}-force`, operations: { POST: restore('raft-snapshot-force', { proved: false }) } },
];
