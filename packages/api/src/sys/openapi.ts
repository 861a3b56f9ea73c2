import type { Principal } from '@transitd/access';
import { turns } from '@transitd/event-loop';
import { anything, bool, list, map, object, string, TextCache, unavailable } from '@transitd/http';
import { version } from '@transitd/process';
import { openApi, type Place } from '../openapi/openapi.ts';
import * as answers from '../operation/answers.ts';
import { open, type Route } from '../operation/operation.ts';
import { asker, maySee, seenOf } from './internal.ts';

/** Returns one generic mount for each type, with a path parameter instead of a path. */
function generic(places: readonly Place[]): readonly Place[] {
  const types = new Set(places.map(({ type }) => type));
  return [...types].map((type) => ({ path: `{${type}_mount_path}`, type }));
}

type Always = 'sys' | 'auth/token';

const placeOf = ({ path, type }: Place): Place => ({ path, type });

const documentSchema = object({
  openapi: string,
  info: map(anything),
  servers: list(map(string)),
  tags: list(map(string)),
  paths: map(anything),
  components: map(anything),
});

/**
 * Route of the OpenAPI document. Like `sys/internal/ui/mounts`, the document contains only the mounts on which the caller has any
 * capability. A caller without a token gets a document without paths.
 */
export const openApiRoutes = (routes: () => readonly Route[]): readonly Route[] => {
  const texts = new TextCache({ charactersMax: 48 * 1024 * 1024 });
  const read = open({
    name: 'openapi',
    about: 'Read this document, with the paths of the mounts on which the caller has any capability',
    takes: { generic_mount_paths: bool('Use a path parameter for the mount path', { default: false }) },
    answers: answers.plain(documentSchema),
    where: 'replica',
    run: async (node, call, token) => {
      const { services } = node;
      if (services === undefined) throw unavailable(node);
      const principal: Principal | undefined = await asker(services, call, token);
      const sees = (path: string): boolean => principal !== undefined && maySee(principal, path);
      const mounts = await seenOf(principal, services.mounts.list, ({ path }) => `${path}/`);
      const methods = await seenOf(principal, await services.logins.mounts.list(), ({ path }) => `auth/${path}/`);
      const listed = call.values.generic_mount_paths === true ? generic : (places: readonly Place[]) => places;
      const places = {
        mounts: listed(mounts).map(placeOf),
        methods: listed(methods).map(placeOf),
        always: (['sys', 'auth/token'] as const).filter((place) => sees(`${place}/`)),
      };
      const { mounts: engines, methods: logins, always } = places;
      const described = {
        routes: routes(),
        version,
        mounts: engines,
        methods: logins,
        shows: (place: Always) => always.includes(place),
      };
      const make = async () => `${await openApi(described, () => turns.next())}\n`;
      return { status: 200, body: await texts.get(JSON.stringify(places), make) };
    },
  });
  return [{ path: 'sys/internal/specs/openapi', operations: { GET: read } }];
};
