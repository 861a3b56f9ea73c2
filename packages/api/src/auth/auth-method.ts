import { type AuthMount, loginName, type StoredMount, splitsAsAuthPath } from '@transitd/access';
import { type FieldSchema, noHandler, type Reply, unavailable, unsupportedPath } from '@transitd/http';
import type { Services } from '@transitd/node';
import {
  type Call,
  type GuardedOperation,
  none,
  type OpenOperation,
  type OperationDescription,
  type Route,
  withFields,
} from '../operation/operation.ts';
import type { Handler } from '../operation/records.ts';

export type AuthType = AuthMount['type'];

export interface MethodContext {
  readonly services: Services;
  /** The auth method in the path. */
  readonly mount: StoredMount;
}

/** The operation of one auth method type at a path. */
export type MethodHandler = Handler<MethodContext, FieldSchema>;

/** Declares the operation of one auth method type. */
export const methodHandler = <S extends FieldSchema = Record<never, never>>(
  declared: OperationDescription<S> & Pick<Handler<MethodContext, S>, 'run'>,
): Handler<MethodContext, S> => ({ takes: none<S>(), ...declared });

/** Handlers by method type. Types share paths; the type of the method that is enabled at the path selects the handler. */
export type ByType = Partial<Readonly<Record<AuthType, MethodHandler>>>;

async function runMethod(services: Services, call: Call, handlers: ByType): Promise<Reply> {
  const mount = await services.logins.mounts.find(call.params.method ?? '');
  if (mount === undefined) throw noHandler(call.path);
  const handler = handlers[mount.type];
  if (handler === undefined) throw unsupportedPath();
  return withFields(handler.takes, call, (typed) => handler.run({ services, mount }, typed));
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
    run: ({ services }, call) => runMethod(services, call, byType),
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
      if (node.services === undefined) throw unavailable(node);
      return runMethod(node.services, call, byType);
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
