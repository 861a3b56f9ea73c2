import { RequestError } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import type { Reply } from '../http/reply.ts';
import type { OpenOperation, Route } from './operation.ts';

const plainReply = (body: object): Reply => ({ status: 200, body: `${JSON.stringify(body)}\n` });

/** This node becomes a member of another's cluster. It needs no token: there is none before; what it needs is the key of the seal. */
const join: OpenOperation = {
  name: 'raft-join',
  access: 'open',
  unaudited: true,
  run: async (node, { body }) => {
    const { values } = fields(
      {
        leader_api_addr: 'string',
        leader_ca_cert: 'string',
        leader_client_cert: 'string',
        leader_client_key: 'string',
        leader_tls_servername: 'string',
        auto_join: 'string',
        auto_join_scheme: 'string',
        auto_join_port: 'int',
        retry: 'bool',
        non_voter: 'bool',
      },
      body,
    );
    const {
      leader_api_addr: leader = '',
      leader_ca_cert: ca = '',
      non_voter: nonVoter,
      retry,
      auto_join: autoJoin = '',
    } = values;
    if (autoJoin !== '')
      throw new RequestError('invalid_request', 'auto_join is not supported: name a member in leader_api_addr');
    if (leader === '') throw new RequestError('invalid_request', 'leader_api_addr is missing');
    const { joined } = await node.join({
      leaders: [leader],
      ...(ca !== '' && { ca }),
      ...(nonVoter !== undefined && { nonVoter }),
      ...(retry !== undefined && { retry }),
    });
    return plainReply({ joined });
  },
};

/** A node that wants to join asks for a challenge. */
const challenge: OpenOperation = {
  name: 'raft-challenge',
  access: 'open',
  unaudited: true,
  where: 'leader',
  run: async (node, { body, address }) => plainReply(await node.joinDesk.challenge(body, address)),
};

/** … and answers it. */
const answer: OpenOperation = {
  name: 'raft-answer',
  access: 'open',
  unaudited: true,
  where: 'leader',
  run: async (node, { body }) => plainReply(await node.joinDesk.answer(body)),
};

export const raftJoinRoutes: readonly Route[] = [
  { path: 'sys/storage/raft/join', operations: { POST: join } },
  { path: 'sys/storage/raft/bootstrap/challenge', operations: { POST: challenge } },
  { path: 'sys/storage/raft/bootstrap/answer', operations: { POST: answer } },
];
