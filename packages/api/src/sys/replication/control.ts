import {
  bool,
  credential,
  dataReply,
  duration,
  ignoredField,
  object,
  permissionDenied,
  RequestError,
  string,
  text,
  writtenReply,
} from '@transitd/http';
import type { Node } from '@transitd/node';
import { type ClusterReplication, ReplicationError } from '@transitd/replication';
import * as answers from '../../operation/answers.ts';
import { changesIn, propertiesIn } from '../../operation/kept-fields.ts';
import { type GuardedOperation, guarded, guardedOnSecondary, type Route } from '../../operation/operation.ts';
import { shown, timeText } from '../../operation/shown.ts';
import { requireRaft } from '../engine.ts';
import { type PromotionFigures, promotionMembers } from './status.ts';

const control = {
  ...{ capability: 'update', sudo: true, where: 'leader', onSecondary: true },
} as const satisfies Partial<GuardedOperation>;

/** A change of a secondary. An operation token may authorize it. */
const changesSecondary = { capability: 'update', sudo: true, where: 'leader', use: 'changes' } as const;

/** Runs a task of replication. Answers its refusals with 400 and the reason. */
export async function controlled<T>(node: Node, task: (replication: ClusterReplication) => Promise<T>): Promise<T> {
  const { replication } = requireRaft(node);
  if (replication === undefined) throw new RequestError('invalid_request', 'replication needs cluster_addr on every node');
  try {
    return await task(replication);
  } catch (error) {
    if (!(error instanceof ReplicationError)) throw error;
    throw error.code === 'operation_token' ? permissionDenied() : new RequestError('invalid_request', error.message);
  }
}

/** Returns an operation that answers without a body. */
const simple = (name: string, about: string, task: (replication: ClusterReplication) => Promise<void>): GuardedOperation =>
  guarded({
    ...control,
    ...{ name, about },
    takes: { primary_cluster_addr: ignoredField('string') },
    answers: answers.written,
    run: ({ node }) => controlled(node, task),
  });

const fenceFields = {
  fence_after: duration(
    'A primary without contact to a secondary for this long refuses writes, 5 to 60 seconds, and promotions wait longer; default: off',
    { property: 'fenceMs' },
  ),
};

const enablePrimary = guarded({
  ...control,
  name: 'dr-primary-enable',
  about: 'Make this cluster the primary of a new replication set',
  takes: {
    primary_cluster_addr: ignoredField('string'),
    ...fenceFields,
  },
  answers: answers.written,
  run: ({ node }, { values }) => {
    const { fenceMs } = propertiesIn(fenceFields, values);
    return controlled(node, (replication) => replication.enablePrimary({ fenceMs: fenceMs || undefined }));
  },
});

const timeoutFields = {
  timeout: duration('Time to wait for the secondaries, 1 to 30 seconds; default: 5 seconds', { property: 'timeoutMs' }),
};

const acknowledge = guarded({
  ...control,
  name: 'dr-primary-acknowledge',
  about: 'Set whether key material is used only once each secondary has it',
  takes: {
    acknowledge: text('`key_material`, or `none` to use key material at once', {
      required: true,
      oneOf: ['key_material', 'none'],
    }),
    ...timeoutFields,
    on_timeout: text(
      '`refuse`: material that is late is not used before it is confirmed; `degrade`: it is used, with a warning',
      {
        oneOf: ['refuse', 'degrade'],
        default: 'refuse',
      },
    ),
  },
  answers: answers.written,
  run: async ({ node }, { values }) => {
    const { acknowledge: what, on_timeout: onTimeout = 'refuse' } = values;
    if (what !== 'key_material' && what !== 'none')
      throw new RequestError('invalid_request', 'acknowledge must be key_material or none');
    if (onTimeout !== 'refuse' && onTimeout !== 'degrade')
      throw new RequestError('invalid_request', 'on_timeout must be refuse or degrade');
    const settings = { ...changesIn(timeoutFields, values), onTimeout } as const;
    await controlled(node, (replication) => replication.material.setting.write(what === 'key_material' ? settings : undefined));
  },
});
const demote = simple(
  'dr-primary-demote',
  'End the writes of this primary, so that a secondary can be promoted without loss',
  (replication) => replication.demote(),
);
const disablePrimary = simple('dr-primary-disable', 'End replication on a primary', (replication) =>
  replication.disablePrimary(),
);

const activationFields = {
  id: text('Name of the secondary', { required: true, property: 'secondary' }),
  ttl: duration('Time for which the token can be used, at most 24 hours; default: 30 minutes', { property: 'ttlMs' }),
  secondary_public_key: text('Key of the secondary, for which the token is encrypted', { property: 'publicKey' }),
};

const secondaryToken = guarded({
  ...control,
  name: 'dr-secondary-token',
  about: 'Issue a token with which another cluster becomes a secondary; it can be used once',
  takes: activationFields,
  answers: answers.data(object({ token: string })),
  run: async ({ node }, { values }) => {
    const { secondary = '', ttlMs, publicKey } = propertiesIn(activationFields, values);
    const request = { secondary, ttlMs: ttlMs || undefined, publicKey: publicKey || undefined };
    const token = await controlled(node, (replication) => replication.issueToken(request));
    return dataReply({ token });
  },
});

const revokeSecondary = guarded({
  ...control,
  name: 'dr-revoke-secondary',
  about: 'End the rights of a secondary, and of its unused token',
  takes: { id: text('Name of the secondary', { required: true }) },
  answers: answers.written,
  run: ({ node }, { values }) => controlled(node, (replication) => replication.revoke(values.id ?? '')),
});

const enableSecondary = guarded({
  ...control,
  name: 'dr-secondary-enable',
  about: 'Make this cluster a secondary: its records are replaced by those of the primary',
  isSlow: true, // it calls the nodes of the primary, which may not answer
  takes: { token: credential('Activation token of the primary', { required: true }) },
  answers: answers.written,
  run: ({ node }, { values }) => controlled(node, (replication) => replication.enableSecondary(values.token ?? '')),
});

const shownPromotion = shown<PromotionFigures & { readonly utcMs: number }>({
  ...promotionMembers,
  'last_contact?': [string, ({ utcMs, silentMs }) => timeText(silentMs === undefined ? undefined : utcMs - silentMs)],
});

const promote = guardedOnSecondary({
  ...changesSecondary,
  name: 'dr-secondary-promote',
  about: 'Make this cluster the primary',
  isSlow: true, // it waits up to 74 seconds for the fence
  takes: {
    force: bool('Promote even if the primary is alive, ahead or restored, or if this cluster is superseded'),
    primary_cluster_addr: ignoredField('string'),
  },
  answers: answers.data(shownPromotion.schema),
  run: async (node, { values }) => {
    const promotion = await controlled(node, (replication) => replication.promote({ force: values.force === true }));
    return dataReply(shownPromotion.json({ ...promotion, position: promotion.from.index, utcMs: Date.now() }));
  },
});

const disableSecondary = guardedOnSecondary({
  ...changesSecondary,
  name: 'dr-secondary-disable',
  about: 'End replication on a secondary: it keeps the state that it has received, and serves it as a cluster of its own',
  isSlow: true, // it waits up to 74 seconds for the fence
  takes: { force: bool('Leave the set even if the primary is alive, ahead or restored') },
  answers: answers.written,
  run: (node, { values }) => controlled(node, (replication) => replication.disableSecondary({ force: values.force === true })),
});

const generatePublicKey = guardedOnSecondary({
  ...changesSecondary,
  use: 'reads', // the token is still needed to update the primary
  name: 'dr-secondary-generate-public-key',
  about: 'Make a key for which a primary can encrypt the next activation token; it replaces the one before it',
  answers: answers.data(object({ secondary_public_key: string })),
  run: async (node) => {
    const publicKey = await controlled(node, (replication) => replication.makeTokenKey());
    return dataReply({ secondary_public_key: publicKey });
  },
});

const updatePrimary = guardedOnSecondary({
  ...changesSecondary,
  name: 'dr-secondary-update-primary',
  about: 'Connect this secondary to the primary of its set by another activation token; its records stay',
  isSlow: true, // as enable
  takes: {
    token: credential('Activation token of the primary', { required: true }),
    primary_api_addr: ignoredField('string'),
    update_mode: ignoredField('string'),
  },
  answers: answers.written,
  run: (node, { values }) => controlled(node, (replication) => replication.updatePrimary(values.token ?? '')),
});

const recover = guardedOnSecondary({
  ...changesSecondary,
  name: 'dr-secondary-recover',
  about: 'Connect this secondary to its primary again, also after it has stopped because something was wrong',
  takes: {
    resynchronize: bool('Receive the whole state again; done in any case if the records differed from those of the primary'),
  },
  answers: answers.written,
  run: (node, { values }) =>
    controlled(node, async (replication) => replication.recover({ wholeState: values.resynchronize === true })),
});

const salvage = guarded({
  name: 'dr-primary-salvage',
  about: 'Restore a key from the kept state of a former primary, under another name',
  capability: 'update',
  sudo: true,
  where: 'leader',
  isSlow: true, // it reads the whole archive
  takes: {
    snapshot: text('Name of the archive in the folder diverged/ of the active node', { required: true }),
    mount: text('Path of the mount; default: transit'),
    key: text('Name of the key in the archive', { required: true }),
    name: text('Name of the restored key; must not exist yet', { required: true }),
  },
  answers: answers.written,
  run: async ({ node, services }, { values: { snapshot = '', mount = 'transit', key = '', name = '' } }) => {
    const engine = services.mounts.engines.get(mount.replace(/\/$/, ''));
    if (engine === undefined) throw new RequestError('invalid_request', 'there is no transit mount at this path');
    const { snapshots } = node.requireMember();
    const archive = await controlled(node, (replication) => replication.openDiverged(snapshot));
    return writtenReply(await snapshots.reading(archive, (read) => engine.transfers.salvageKey(key, name, read)));
  },
});

/** Routes that change replication. */
export const replicationControlRoutes: readonly Route[] = [
  { path: 'sys/replication/dr/primary/enable', operations: { POST: enablePrimary } },
  { path: 'sys/replication/dr/primary/acknowledge', operations: { POST: acknowledge } },
  { path: 'sys/replication/dr/primary/demote', operations: { POST: demote } },
  { path: 'sys/replication/dr/primary/disable', operations: { POST: disablePrimary } },
  { path: 'sys/replication/dr/primary/secondary-token', operations: { POST: secondaryToken } },
  { path: 'sys/replication/dr/primary/revoke-secondary', operations: { POST: revokeSecondary } },
  { path: 'sys/replication/dr/secondary/enable', operations: { POST: enableSecondary } },
  { path: 'sys/replication/dr/secondary/promote', operations: { POST: promote } },
  { path: 'sys/replication/dr/secondary/disable', operations: { POST: disableSecondary } },
  { path: 'sys/replication/dr/secondary/generate-public-key', operations: { POST: generatePublicKey } },
  { path: 'sys/replication/dr/secondary/update-primary', operations: { POST: updatePrimary } },
  { path: 'sys/replication/dr/secondary/recover', operations: { POST: recover } },
  { path: 'sys/replication/dr/primary/salvage', operations: { POST: salvage } },
];
