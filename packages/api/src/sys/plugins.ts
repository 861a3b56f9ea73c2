import { randomUUID } from 'node:crypto';
import { dataReply, object, type Reply, RequestError, string, text, texts } from '@transitd/http';
import type { Services } from '@transitd/node';
import { printableName } from '@transitd/transit-engine';
import * as answers from '../operation/answers.ts';
import { guarded, type Route } from '../operation/operation.ts';

const kinds: readonly string[] = ['secret', 'unknown'];
const byName = kinds.map((kind) => `sys/plugins/reload/${kind}/transit`);
const scope = text('Accepted, but has no effect: every node reloads');

/**
 * Reloads engines. This applies settings that are read only when an engine is loaded; at present this is only the size of the key cache.
 */
const reload = guarded({
  name: 'plugins-reload',
  about: 'Apply stored cache sizes on every node',
  takes: {
    plugin: text('Type of the engines; set either `plugin` or `mounts`', { oneOf: ['transit'] }),
    mounts: texts('Paths of the mounts'),
    scope,
  },
  answers: answers.data(object({ reload_id: string })),
  capability: 'update',
  sudo: true,
  sameAs: () => byName,
  run: ({ services }, { values }) => reloaded(services, mountsAsked(services, values)),
});

/** The same for newer command lines, which name the kind of the plugin in the path. */
const reloadByName = guarded({
  name: 'plugins-reload-by-name',
  about: 'Apply stored cache sizes on every node',
  takes: {
    type: text('Kind of the plugin', { oneOf: kinds }),
    name: text('Type of the engines', { oneOf: ['transit'] }),
    scope,
  },
  answers: answers.data(object({ reload_id: string })),
  capability: 'update',
  sudo: true,
  sameAs: () => [...byName, 'sys/plugins/reload/backend'],
  run({ services }, { values }) {
    const { type = '', name = '' } = values;
    if (!kinds.includes(type)) throw refusal(`no plugin of the kind ${printableName(type)} can be reloaded`);
    return reloaded(services, mountsAsked(services, { plugin: name }));
  },
});

async function reloaded({ mounts }: Services, paths: readonly string[]): Promise<Reply> {
  for (const path of new Set(paths)) await mounts.engines.get(path)?.reload();
  return dataReply({ reload_id: randomUUID() });
}

/** Returns the paths of the mounts to reload, given by type or by path. @throws RequestError `invalid_request` */
function mountsAsked(
  { mounts }: Services,
  { plugin = '', mounts: listed = [] }: { readonly plugin?: string | undefined; readonly mounts?: readonly string[] | undefined },
): readonly string[] {
  const paths = listed.map((path) => path.trim().replace(/\/$/, ''));
  if ((plugin === '') === (paths.length === 0)) throw refusal('exactly one of plugin and mounts must be set');
  if (plugin !== '') {
    const ofKind = mounts.list.filter(({ type }) => type === plugin);
    if (ofKind.length === 0) throw refusal(`no mount has the plugin type ${plugin}`);
    return ofKind.map(({ path }) => path);
  }
  const unknown = paths.find((path) => !mounts.list.some((mount) => mount.path === path));
  if (unknown !== undefined) throw refusal(`no mount at ${unknown}/`);
  return paths;
}

const refusal = (message: string): RequestError => new RequestError('invalid_request', message);

export const pluginRoutes: readonly Route[] = [
  { path: 'sys/plugins/reload/backend', operations: { POST: reload } },
  { path: 'sys/plugins/reload/:type/:name', operations: { POST: reloadByName } },
];
