import { type AuthMount, loginName, type StoredMount, splitsAsAuthPath } from '@transitd/access';
import { type FieldSchema, noHandler, type Reply, unavailable, unsupportedPath } from '@transitd/http';
import type { Services } from '@transitd/node';
import {
  type Call,
  type GuardedOperation,
  none,
  type OpenOperation,
  type OperationDescription,
  type Result,
  type Route,
  type TypedCall,
  withFields,
} from '../operation/operation.ts';

export type AuthType = AuthMount['type'];

export interface MethodContext {
  readonly services: Services;
  /** The auth method in the path. */
  readonly mount: StoredMount;
}

/** The operation of one auth method type at a path. */
export interface MethodHandler extends OperationDescription {
  answer(context: MethodContext, call: Call): Reply | Promise<Reply>;
}

/** Makes a handler that receives its declared fields. */
export function methodHandler<S extends FieldSchema = Record<never, never>>({
  run,
  ...description
}: OperationDescription<S> & { run(context: MethodContext, call: TypedCall<S>): Result }): MethodHandler {
  const takes = description.takes ?? none<S>();
  return { ...description, answer: (context, call) => withFields(takes, call, (typed) => run(context, typed)) };
}

/** Handlers by method type. Types share paths; the type of the method that is enabled at the path selects the handler. */
export type ByType = Partial<Readonly<Record<AuthType, MethodHandler>>>;

async function selectHandler(
  services: Services,
  { path, params }: Call,
  handlers: ByType,
): Promise<readonly [MethodHandler, StoredMount]> {
  const mount = await services.logins.mounts.find(params.method ?? '');
  if (mount === undefined) throw noHandler(path);
  const handler = handlers[mount.type];
  if (handler === undefined) throw unsupportedPath();
  return [handler, mount];
}

/** Makes an operation of an auth method that needs a token. */
export function methodOperation(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  byType: ByType,
  more: Pick<GuardedOperation, 'where' | 'sameAs'> = {},
): GuardedOperation {
  return {
    name,
    access: 'token',
    capability,
    byType,
    ...more,
    run: async ({ services }, call) => {
      const [handler, mount] = await selectHandler(services, call, byType);
      return handler.answer({ services, mount }, call);
    },
  };
}

/** Makes a login: it needs no token and ignores a token header. */
export function loginOperation(byType: ByType): OpenOperation {
  return {
    name: 'login',
    access: 'open',
    wraps: true,
    where: 'leader',
    byType,
    run: async (node, call) => {
      const { services } = node;
      if (services === undefined) throw unavailable(node);
      const [handler, mount] = await selectHandler(services, call, byType);
      return handler.answer({ services, mount }, call);
    },
  };
}

/** Makes a route below an auth method; `*method` is its path. */
export const methodRoute = (path: string, operations: Route['operations']): Route => ({
  path: `auth/*method/${path}`,
  names: { name: loginName },
  accepts: ({ method = '' }) => splitsAsAuthPath(method.split('/')),
  operations,
});
