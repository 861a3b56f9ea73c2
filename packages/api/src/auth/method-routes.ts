import { loginName, splitsAsAuthPath, wordsBelow } from '@transitd/access';
import { type Body, noHandler, type Reply, unavailable, unsupportedPath, type Verb } from '@transitd/http';
import type { Services } from '@transitd/node';
import type { AuthMethod, MethodOperation } from '../operation/auth-method.ts';
import { type Call, type Operation, type Params, type Route, withFields } from '../operation/operation.ts';

/** The operation of one type at a path. */
interface OfType {
  readonly type: string;
  readonly operation: MethodOperation;
}

/**
 * Returns the routes of auth methods, in the order in which the methods declare them. If several methods have an operation at a path, the
 * type of the method that is enabled there selects the one that runs.
 * @throws Error if they differ in name or rights, which are decided before the type is known
 */
export function methodRoutes(methods: readonly AuthMethod[]): readonly Route[] {
  const words = wordsBelow(methods);
  const table = new Map<string, Map<Verb, OfType[]>>();
  for (const { type, paths } of methods)
    for (const [path, operations] of Object.entries(paths)) {
      const verbs = table.get(path) ?? new Map<Verb, OfType[]>();
      table.set(path, verbs);
      for (const [verb, operation] of Object.entries(operations) as [Verb, MethodOperation][])
        verbs.set(verb, [...(verbs.get(verb) ?? []), { type, operation }]);
    }
  return [...table].map(([path, verbs]) => ({
    path: `auth/*method/${path}`,
    names: { name: loginName },
    accepts: ({ method = '' }) => splitsAsAuthPath(method.split('/'), words),
    operations: Object.fromEntries([...verbs].map(([verb, ofTypes]) => [verb, joined(`${verb} ${path}`, ofTypes)])),
  }));
}

function joined(at: string, ofTypes: readonly OfType[]): Operation {
  const [{ type, operation }] = ofTypes as readonly [OfType];
  const { name, capability, where } = operation;
  if (ofTypes.some(({ operation: other }) => other.name !== name || other.capability !== capability || other.where !== where))
    throw new Error(`the auth methods with ${at} declare different operations`);
  const handlers = new Map(ofTypes.map((each) => [each.type, each.operation.handler]));
  const byType = Object.fromEntries(handlers);
  const run = async (services: Services, call: Call): Promise<Reply> => {
    const mount = await services.logins.mounts.find(call.params.method ?? '');
    if (mount === undefined) throw noHandler(call.path);
    const [handler, method] = [handlers.get(mount.type), services.logins.opened(mount.type)];
    if (handler === undefined || method === undefined) throw unsupportedPath();
    return withFields(handler.takes, call, (typed) => handler.run({ services, mount, method }, typed));
  };
  if (capability === 'open')
    return {
      access: 'open',
      ...{ name, byType, wraps: true, where: 'leader' },
      run: async (node, call) => {
        if (node.services === undefined) throw unavailable(node);
        return run(node.services, call);
      },
    };
  const sameAs = ofTypes.flatMap((each) => each.operation.sameAs ?? []);
  return {
    access: 'token',
    ...{ name: `${ofTypes.length > 1 ? 'auth' : type}-${name}`, capability, byType },
    ...(where && { where }),
    ...(sameAs.length > 0 && { sameAs: (params: Params, body?: Body) => sameAs.flatMap((pathsOf) => pathsOf(params, body)) }),
    run: ({ services }, call) => run(services, call),
  };
}
