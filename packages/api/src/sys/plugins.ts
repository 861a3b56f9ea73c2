import { randomUUID } from 'node:crypto';
import { any, dataReply, type JsonValue, list, object, RequestError, string, text } from '@transitd/http';
import type { Services } from '@transitd/node';
import * as answers from '../operation/answers.ts';
import { guarded, type Route } from '../operation/operation.ts';

/**
 * Reloads engines. This applies settings that are read only when an engine is loaded; at present this is only the size of the key cache.
 */
const reload = guarded({
  name: 'plugins-reload',
  about: 'Apply stored cache sizes on every node',
  takes: {
    plugin: text('Type of the engines; set either `plugin` or `mounts`', { oneOf: ['transit'] }),
    mounts: any('Paths of the mounts', { shape: list(string) }),
    scope: text('Accepted, but has no effect: every node reloads'),
  },
  answers: answers.data(object({ reload_id: string })),
  capability: 'update',
  sudo: true,
  async run({ services }, { values, warnings }) {
    for (const mount of new Set(mountsAsked(services, values))) await services.mounts.engines.get(mount)?.reload();
    return dataReply(JSON.stringify({ reload_id: randomUUID() }), warnings);
  },
});

/** Returns the paths of the mounts to reload, given by type or by path. @throws RequestError `invalid_request` */
function mountsAsked(
  { mounts }: Services,
  { plugin = '', mounts: listed }: { readonly plugin: string | undefined; readonly mounts: JsonValue | undefined },
): readonly string[] {
  const paths = listed === undefined ? [] : pathsIn(listed);
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

function pathsIn(listed: JsonValue): string[] {
  const paths = typeof listed === 'string' ? listed.split(',') : listed;
  if (!Array.isArray(paths)) throw refusal('mounts must be a list of paths');
  return paths.map((path: JsonValue) => {
    if (typeof path !== 'string') throw refusal('mounts must be a list of paths');
    return path.trim().replace(/\/$/, '');
  });
}

const refusal = (message: string): RequestError => new RequestError('invalid_request', message);

export const pluginRoutes: readonly Route[] = [{ path: 'sys/plugins/reload/backend', operations: { POST: reload } }];
