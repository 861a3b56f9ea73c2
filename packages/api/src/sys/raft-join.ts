import { isLeaderAddress, joinAnswerSchema, joinRequestSchema } from '@transitd/cluster';
import {
  anything,
  bool,
  boolean,
  ignoredField,
  type JsonSchema,
  map,
  object,
  plainReply,
  RequestError,
  text,
} from '@transitd/http';
import type { Node } from '@transitd/node';
import * as answers from '../operation/answers.ts';
import { type OpenOperation, open, type Route } from '../operation/operation.ts';
import { refuseEtcd } from './engine.ts';

function requireDesk(node: Node): Node['joinDesk'] {
  refuseEtcd(node);
  return node.joinDesk;
}

/** Joins this node to a cluster. It needs no token, since no token exists yet. Instead the node proves that it has the seal key. */
const join = open({
  name: 'raft-join',
  onSecondary: true,
  about: 'Join this node to a cluster',
  takes: {
    leader_api_addr: text('URL of a cluster member: http or https, host and port', { required: true }),
    leader_ca_cert: text('CA certificates in PEM, to verify the server at `leader_api_addr`'),
    leader_client_cert: ignoredField('string'),
    leader_client_key: ignoredField('string'),
    leader_tls_servername: ignoredField('string'),
    auto_join: text('Not supported; must be empty'),
    auto_join_scheme: ignoredField('string'),
    auto_join_port: ignoredField('int'),
    retry: bool('Retry in the background until the join succeeds'),
    non_voter: bool('Join as a non-voter'),
  },
  answers: answers.plain(object({ joined: boolean })),
  run: async (node, { values, address }) => {
    const {
      leader_api_addr: leader = '',
      leader_ca_cert: ca = '',
      non_voter: nonVoter,
      retry,
      auto_join: autoJoin = '',
    } = values;
    if (autoJoin !== '')
      throw new RequestError('invalid_request', 'auto_join is not supported: set leader_api_addr to the URL of a member');
    if (leader === '') throw new RequestError('invalid_request', 'leader_api_addr is missing');
    if (!isLeaderAddress(leader))
      throw new RequestError('invalid_request', 'leader_api_addr is not an address such as https://n1.example:8200');
    const target = {
      leaders: [leader],
      ...(ca !== '' && { ca }),
      ...(nonVoter !== undefined && { nonVoter }),
      ...(retry !== undefined && { retry }),
    };
    refuseEtcd(node);
    const { joined } = await node.join(target, address);
    return plainReply({ joined });
  },
});

/** Returns a challenge to a joining node. */
const challenge: OpenOperation = {
  name: 'raft-challenge',
  access: 'open',
  about: 'Request a challenge for a joining node',
  body: joinRequestSchema as JsonSchema,
  answers: { ...answers.plain(map(anything)), ...answers.refused(409) },
  unaudited: true,
  onSecondary: true,
  where: 'leader',
  run: async (node, { body, address }) => plainReply(await requireDesk(node).challenge(body, address)),
};

/** Checks the answer of a joining node to its challenge. */
const answer: OpenOperation = {
  name: 'raft-answer',
  access: 'open',
  about: 'Answer the challenge of a joining node',
  body: joinAnswerSchema as JsonSchema,
  answers: answers.plain(map(anything)),
  unaudited: true,
  onSecondary: true,
  where: 'leader',
  run: async (node, { body }) => plainReply(await requireDesk(node).answer(body)),
};

export const raftJoinRoutes: readonly Route[] = [
  { path: 'sys/storage/raft/join', operations: { POST: join } },
  { path: 'sys/storage/raft/bootstrap/challenge', operations: { POST: challenge } },
  { path: 'sys/storage/raft/bootstrap/answer', operations: { POST: answer } },
];
