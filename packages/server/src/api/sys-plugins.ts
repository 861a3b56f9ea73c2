import { randomUUID } from 'node:crypto';
import { dataReply } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import type { JsonValue } from '../http/json.ts';
import type { Service } from '../node/service.ts';
import type { GuardedOperation, Route } from './operation.ts';

/** Has engines put in force what they take up only when they are loaded: today the size of their key cache. */
const reload: GuardedOperation = {
  name: 'plugins-reload',
  access: 'token',
  capability: 'update',
  sudo: true,
  async run({ service }, { body }) {
    const { values, warnings } = fields({ plugin: 'string', mounts: 'any', scope: 'string' }, body);
    for (const mount of new Set(mountsAsked(service, values))) await service.mounts.engines.get(mount)?.reload();
    return dataReply(JSON.stringify({ reload_id: randomUUID() }), warnings);
  },
};

/** Paths of the mounts that are meant, by their kind or one by one. @throws RequestError `invalid_request` */
function mountsAsked(
  { mounts }: Service,
  { plugin = '', mounts: listed }: { readonly plugin: string | undefined; readonly mounts: JsonValue | undefined },
): readonly string[] {
  const paths = listed === undefined ? [] : pathsIn(listed);
  if ((plugin === '') === (paths.length === 0)) throw refusal('one of plugin or mounts must be provided, and not both');
  if (plugin !== '') {
    const ofKind = mounts.list.filter(({ type }) => type === plugin);
    if (ofKind.length === 0) throw refusal(`no mount of plugin ${plugin}`);
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
