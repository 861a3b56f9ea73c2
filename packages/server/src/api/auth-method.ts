import type { AuthMount, StoredMount } from '@transitd/access';
import { noHandler, unsupportedPath } from '../http/error-answer.ts';
import type { Reply } from '../http/reply.ts';
import { unavailable } from '../http/unavailable.ts';
import type { Service } from '../node/service.ts';
import type { Call, GuardedOperation, OpenOperation, Route } from './operation.ts';

type AuthType = AuthMount['type'];

export interface MethodContext {
  readonly service: Service;
  /** The method that the path begins with. */
  readonly mount: StoredMount;
}

export type MethodHandler = (context: MethodContext, call: Call) => Promise<Reply>;

/** Several kinds of methods have the same paths: what is enabled at one decides. */
type ByType<Handler> = Partial<Readonly<Record<AuthType, Handler>>>;

async function chosen<Handler>(
  service: Service,
  { path, params }: Call,
  handlers: ByType<Handler>,
): Promise<readonly [Handler, StoredMount]> {
  const mount = await service.logins.mounts.find(params['method'] ?? '');
  if (mount === undefined) throw noHandler(path);
  const handler = handlers[mount.type];
  if (handler === undefined) throw unsupportedPath();
  return [handler, mount];
}

/** What an operator asks of a method. */
export function methodOperation(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  handlers: ByType<MethodHandler>,
  cluster: Pick<GuardedOperation, 'where' | 'adds'> = {},
): GuardedOperation {
  return {
    name,
    access: 'token',
    capability,
    ...cluster,
    run: async ({ service }, call) => {
      const [handler, mount] = await chosen(service, call, handlers);
      return handler({ service, mount }, call);
    },
  };
}

/** What somebody asks who has no token yet. What is shown as one is not looked at. */
export function loginOperation(handlers: ByType<MethodHandler>): OpenOperation {
  return {
    name: 'login',
    access: 'open',
    wraps: true,
    where: 'leader',
    run: async (node, call) => {
      const { service } = node;
      if (service === undefined) throw unavailable(node);
      const [handler, mount] = await chosen(service, call, handlers);
      return handler({ service, mount }, call);
    },
  };
}

/** The paths of a method: `:method` stands for where it is enabled. */
export const methodRoute = (path: string, operations: Route['operations']): Route => ({
  path: `auth/:method/${path}`,
  accepts: ({ method }) => method !== 'token',
  operations,
});
