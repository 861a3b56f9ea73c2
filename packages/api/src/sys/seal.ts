import { parseShare, type SealStatus } from '@transitd/barrier';
import {
  any,
  bool,
  boolean,
  constant,
  credential,
  ignoredField,
  int,
  integer,
  type JsonValue,
  list,
  noContentReply,
  notInitialized,
  object,
  plainReply,
  type Reply,
  RequestError,
  string,
} from '@transitd/http';
import type { Node } from '@transitd/node';
import { version } from '@transitd/process';
import * as answers from '../operation/answers.ts';
import { changesIn } from '../operation/kept-fields.ts';
import { guarded, open, type Route } from '../operation/operation.ts';
import { shown } from '../operation/shown.ts';

/** Properties of a provider that fails. */
const backendFailure = { unhealthy_since: string, failure: string };

interface SealView {
  readonly node: Node;
  readonly status: SealStatus;
  /** Why the request had no effect, or not yet the full one. */
  readonly warning?: string | undefined;
}

const shownSeal = shown<SealView>({
  type: [string, ({ status }) => status.type],
  initialized: [boolean, ({ status }) => status.initialized],
  sealed: [boolean, ({ status }) => status.sealed],
  t: [{ ...integer, description: 'Key shares required to unseal' }, ({ status }) => status.t],
  n: [{ ...integer, description: 'Total number of key shares' }, ({ status }) => status.n],
  progress: [integer, ({ status }) => status.progress],
  nonce: [string, ({ status }) => status.nonce],
  version: [string, () => version],
  build_date: [string, () => ''],
  migration: [{ ...boolean, description: 'The seal is to be replaced by the configured one' }, ({ status }) => status.migration],
  'cluster_name?': [string, ({ node }) => node.member?.clusterName?.name],
  'cluster_id?': [string, ({ node }) => node.member?.clusterName?.id],
  recovery_seal: [boolean, ({ status }) => status.recoverySeal],
  storage_type: [constant('raft', 'etcd'), ({ node }) => node.config.storage.type],
  removed_from_cluster: [boolean, ({ node }) => node.removed],
  'warnings?': [list(string), ({ warning }) => (warning === undefined ? undefined : [warning])],
});

const sealStatusReply = (node: Node, status: SealStatus = node.sealStatus, warning?: string): Reply =>
  plainReply(shownSeal.json({ node, status, warning }));

const sealStatusAnswer = answers.plain(shownSeal.schema);

const sealStatus = open({
  name: 'seal-status',
  onSecondary: true,
  about: 'Read the seal status of this node',
  answers: sealStatusAnswer,
  unaudited: true,
  run: (node) => sealStatusReply(node),
});

const sealBackendStatus = open({
  name: 'seal-backend-status',
  onSecondary: true,
  about: "Read the health of the seal's provider, as this node's calls have found it",
  answers: answers.plain(
    object(
      {
        healthy: boolean,
        backends: list(object({ name: string, healthy: boolean }, backendFailure)),
        fully_wrapped: constant(true),
      },
      { unhealthy_since: string },
    ),
  ),
  unaudited: true,
  run: (node) => {
    const { healthy, unhealthySinceMs, failure } = node.sealHealth ?? { healthy: true };
    const since = unhealthySinceMs !== undefined && { unhealthy_since: new Date(unhealthySinceMs).toISOString() };
    const backend = { name: node.sealStatus.type, healthy, ...since, ...(failure !== undefined && { failure }) };
    return plainReply({ healthy, ...since, backends: [backend], fully_wrapped: true });
  },
});

const initStatus = open({
  name: 'init-status',
  onSecondary: true,
  about: 'Read whether this node is initialized',
  answers: answers.plain(object({ initialized: boolean })),
  unaudited: true,
  run: (node) => plainReply({ initialized: node.initialized }),
});

/** Fields with PGP keys that would encrypt the shares. They are refused, because ignoring them would return the shares in plaintext. */
const pgpMembers = ['pgp_keys', 'recovery_pgp_keys', 'root_token_pgp_key'] as const;

const isGiven = (value: JsonValue | undefined): boolean =>
  value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);

const encrypted = any('Not supported; must be empty');

const shareFields = {
  secret_shares: int('Number of key shares of a `shamir` seal', { min: 0, max: 255 }),
  secret_threshold: int('Number of key shares required to unseal', { min: 0, max: 255 }),
  recovery_shares: int('Number of recovery shares of an auto-unseal seal', { min: 0, max: 255 }),
  recovery_threshold: int('Number of recovery shares required', { min: 0, max: 255 }),
};

const initialize = open({
  name: 'init',
  about: 'Initialize the cluster: create the root key, its shares and the initial root token',
  takes: {
    ...shareFields,
    stored_shares: ignoredField('int'),
    pgp_keys: encrypted,
    recovery_pgp_keys: encrypted,
    root_token_pgp_key: encrypted,
  },
  answers: answers.plain(
    object(
      { keys: list(string), keys_base64: list(string), root_token: string },
      { recovery_keys: list(string), recovery_keys_base64: list(string) },
    ),
  ),
  unaudited: true,
  run: async (node, { values }) => {
    const pgp = pgpMembers.find((name) => isGiven(values[name]));
    if (pgp !== undefined) throw new RequestError('invalid_request', `${pgp} is not supported: shares are returned unencrypted`);
    const { kind, shares, rootToken } = await node.initialize(changesIn(shareFields, values));
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
});

const unseal = open({
  name: 'unseal',
  onSecondary: true,
  about: 'Submit a key share; the last required share unseals the node',
  takes: {
    key: credential('Key share, in hex or base64; not needed with `reset`'),
    reset: bool('Discard the shares submitted so far; has no effect if a share was submitted in the last minute', {
      default: false,
    }),
    migrate: bool('The share authorizes the migration from `migrate_seal_from` to `seal`', { default: false }),
  },
  answers: sealStatusAnswer,
  unaudited: true,
  run: async (node, { values, address }) => {
    if (!node.initialized) throw notInitialized();
    if (values.reset === true) {
      const { status, ignored } = node.resetUnseal(address);
      return sealStatusReply(node, status, ignored);
    }
    const share = parseShare(values.key ?? '');
    try {
      if (values.migrate !== true) return sealStatusReply(node, await node.unseal(share));
      const { status, waits } = await node.migrateSeal(share);
      return sealStatusReply(node, status, waits);
    } finally {
      share.fill(0);
    }
  },
});

const seal = guarded({
  name: 'seal',
  about: 'Seal this node: drop all keys from memory',
  answers: answers.written,
  capability: 'update',
  sudo: true,
  onSecondary: true,
  where: 'here',
  whenSealed: noContentReply,
  run: ({ node }) => node.seal(),
});

/** Routes that initialize, seal and unseal this node. */
export const sealRoutes: readonly Route[] = [
  { path: 'sys/init', operations: { GET: initStatus, POST: initialize } },
  { path: 'sys/seal-status', operations: { GET: sealStatus } },
  { path: 'sys/seal-backend-status', operations: { GET: sealBackendStatus } },
  { path: 'sys/unseal', operations: { POST: unseal } },
  { path: 'sys/seal', operations: { POST: seal } },
];
