import { RequestError, text, writtenReply } from '@transitd/http';
import * as answers from '../../operation/answers.ts';
import { guarded, type Route } from '../../operation/operation.ts';
import { controlled } from './control.ts';

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
    const { snapshots } = node;
    if (snapshots === undefined) throw new RequestError('invalid_request', 'this node keeps no snapshots');
    const archive = await controlled(node, (replication) => replication.openDiverged(snapshot));
    return writtenReply(await snapshots.reading(archive, (read) => engine.transfers.salvageKey(key, name, read)));
  },
});

/** Routes that bring back what was lost in a promotion. */
export const salvageRoutes: readonly Route[] = [{ path: 'sys/replication/dr/primary/salvage', operations: { POST: salvage } }];
