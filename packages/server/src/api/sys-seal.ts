import { parseShare, type SealStatus } from '@transitd/barrier';
import { noContent, writtenReply } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import type { Body } from '../http/json.ts';
import type { Reply } from '../http/reply.ts';
import { notInitialized } from '../http/unavailable.ts';
import type { Node } from '../node/node.ts';
import { version } from '../version.ts';
import type { GuardedOperation, OpenOperation, Route } from './operation.ts';

/** These endpoints answer without the envelope, as their clients know them. */
const plainReply = (body: object): Reply => ({ status: 200, body: `${JSON.stringify(body)}\n` });

function sealStatusReply(node: Node, status: SealStatus = node.sealStatus): Reply {
  const cluster = node.clusterName;
  return plainReply({
    type: status.type,
    initialized: status.initialized,
    sealed: status.sealed,
    t: status.t,
    n: status.n,
    progress: status.progress,
    nonce: status.nonce,
    version,
    build_date: '',
    migration: false,
    ...(cluster !== undefined && { cluster_name: cluster.name, cluster_id: cluster.id }),
    recovery_seal: status.recoverySeal,
    storage_type: 'raft',
    removed_from_cluster: node.removed,
  });
}

const sealStatus: OpenOperation = { name: 'seal-status', access: 'open', unaudited: true, run: (node) => sealStatusReply(node) };

const initStatus: OpenOperation = {
  name: 'init-status',
  access: 'open',
  unaudited: true,
  run: (node) => plainReply({ initialized: node.initialized }),
};

/** Members by which shares would be encrypted for their holders. They are refused: leaving them out would show shares in clear. */
const pgpMembers = ['pgp_keys', 'recovery_pgp_keys', 'root_token_pgp_key'] as const;

const isGiven = (value: Body[string] | undefined): boolean =>
  value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);

const initialize: OpenOperation = {
  name: 'init',
  access: 'open',
  unaudited: true,
  run: async (node, { body }) => {
    const { values } = fields(
      {
        secret_shares: 'int',
        secret_threshold: 'int',
        recovery_shares: 'int',
        recovery_threshold: 'int',
        stored_shares: 'int',
        pgp_keys: 'any',
        recovery_pgp_keys: 'any',
        root_token_pgp_key: 'any',
      },
      body,
    );
    const pgp = pgpMembers.find((name) => isGiven(values[name]));
    if (pgp !== undefined) throw new RequestError('invalid_request', `${pgp} is not supported: shares are returned as they are`);
    const { kind, shares, rootToken } = await node.initialize({
      ...(values.secret_shares !== undefined && { secretShares: values.secret_shares }),
      ...(values.secret_threshold !== undefined && { secretThreshold: values.secret_threshold }),
      ...(values.recovery_shares !== undefined && { recoveryShares: values.recovery_shares }),
      ...(values.recovery_threshold !== undefined && { recoveryThreshold: values.recovery_threshold }),
    });
    const hex = shares.map((share) => share.toString('hex'));
    const base64 = shares.map((share) => share.toString('base64'));
    for (const share of shares) share.fill(0);
    return plainReply({
      keys: kind === 'key' ? hex : [],
      keys_base64: kind === 'key' ? base64 : [],
      ...(kind === 'recovery' && { recovery_keys: hex, recovery_keys_base64: base64 }),
      root_token: rootToken,
    });
  },
};

const unseal: OpenOperation = {
  name: 'unseal',
  access: 'open',
  unaudited: true,
  run: async (node, { body }) => {
    const { values } = fields({ key: 'string', reset: 'bool', migrate: 'bool' }, body);
    if (values.migrate === true) throw new RequestError('invalid_request', 'moving between seal types is not supported');
    if (!node.initialized) throw notInitialized();
    if (values.reset === true) return sealStatusReply(node, node.resetUnseal());
    const share = parseShare(values.key ?? '');
    try {
      return sealStatusReply(node, await node.unseal(share));
    } finally {
      share.fill(0);
    }
  },
};

const seal: GuardedOperation = {
  name: 'seal',
  access: 'token',
  capability: 'update',
  sudo: true,
  where: 'here',
  whenSealed: noContent,
  run: async ({ node }, { body }) => {
    const { warnings } = fields({}, body);
    await node.seal();
    return writtenReply(warnings);
  },
};

/** Initialising, sealing and unsealing this node. */
export const sealRoutes: readonly Route[] = [
  { path: 'sys/init', operations: { GET: initStatus, POST: initialize } },
  { path: 'sys/seal-status', operations: { GET: sealStatus } },
  { path: 'sys/unseal', operations: { POST: unseal } },
  { path: 'sys/seal', operations: { POST: seal } },
];
