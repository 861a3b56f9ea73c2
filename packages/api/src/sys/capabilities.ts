import type { Principal } from '@transitd/access';
import { accessTurns, TimeSlice } from '@transitd/event-loop';
import {
  credential,
  type FieldSchema,
  list,
  map,
  type Reply,
  RequestError,
  string,
  texts,
  topLevelDataReply,
} from '@transitd/http';
import { topLevelData } from '../operation/answers.ts';
import { checkGivenPaths } from '../operation/given-paths.ts';
import { type Context, type GuardedOperation, guarded, type Route, type TypedCall } from '../operation/operation.ts';
import { PathForms } from '../operation/path-forms.ts';

const schema = {
  path: texts('Alias of `paths`', { aliasOf: 'paths' }),
  paths: texts('Paths to check'),
  token: credential('Token to check'),
  accessor: credential('Accessor of the token to check'),
} as const satisfies FieldSchema;

/** Maximum number of paths in one request. More would delay other requests. */
const pathsMax = 1000;

type Values = TypedCall<typeof schema>['values'];

async function capabilitiesReply(forms: PathForms, principal: Principal | undefined, values: Values): Promise<Reply> {
  if (principal === undefined) throw new RequestError('invalid_request', 'invalid token or accessor');
  const paths = values.paths ?? values.path ?? [];
  if (paths.length === 0) throw new RequestError('invalid_request', "'paths' or 'path' must contain at least one path");
  checkGivenPaths(paths, pathsMax);
  const data: Record<string, readonly string[]> = Object.create(null);
  const slice = new TimeSlice(accessTurns);
  for (const path of paths) {
    if (slice.isOver) await slice.next();
    data[path] = forms.capabilities(principal, path);
  }
  const [first = ''] = paths;
  if (paths.length === 1) data['capabilities'] = forms.capabilities(principal, first);
  return topLevelDataReply(data);
}

/**
 * Routes that return the capabilities of a token on paths.
 * @param routes - returns all routes, which define the canonical forms of paths
 */
export function capabilityRoutes(routes: () => readonly Route[]): readonly Route[] {
  const forms = new PathForms(routes);
  const capabilitiesRoute = (
    name: string,
    about: string,
    subject: (context: Context, values: Values) => Promise<Principal | undefined>,
  ): Route => {
    const operation: GuardedOperation = guarded({
      name,
      about,
      takes: schema,
      answers: topLevelData(map(list(string))),
      capability: 'update',
      repeatsData: true,
      where: 'replica',
      run: async (context, { values }) => capabilitiesReply(forms, await subject(context, values), values),
    });
    return { path: `sys/${name}`, operations: { POST: operation } };
  };
  return [
    capabilitiesRoute('capabilities', 'Read the capabilities of a token on paths', ({ services }, { token = '' }) =>
      services.registry.principal({ token }),
    ),
    capabilitiesRoute(
      'capabilities-self',
      'Read the capabilities of the calling token on paths',
      async ({ principal }) => principal,
    ),
    capabilitiesRoute(
      'capabilities-accessor',
      'Read the capabilities of a token on paths, by its accessor',
      ({ services }, { accessor = '' }) => services.registry.principal({ accessor }),
    ),
  ];
}
