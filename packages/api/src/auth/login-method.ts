import { type AuthMount, loginName, type StoredMount } from '@transitd/access';
import { type FieldSchema, noHandler, type Reply, unavailable, unsupportedPath } from '@transitd/http';
import type { Services } from '@transitd/node';
import {
  type Call,
  type GuardedOperation,
  none,
  type OpenOperation,
  type OperationDescription,
  type Route,
  readFields,
  type TypedCall,
} from '../operation/operation.ts';

export type AuthType = AuthMount['type'];

export interface MethodContext {
  readonly services: Services;
  /** The method that the path begins with. */
  readonly mount: StoredMount;
}

/** What one kind of method does at a path. */
export interface MethodHandler extends OperationDescription {
  answer(context: MethodContext, call: Call): Promise<Reply>;
}

/** One that is given the fields that it declares. */
export function methodHandler<S extends FieldSchema = Record<never, never>>({
  run,
  ...description
}: OperationDescription<S> & { run(context: MethodContext, call: TypedCall<S>): Promise<Reply> }): MethodHandler {
  const takes = description.takes ?? none<S>();
  return { ...description, answer: (context, call) => run(context, readFields(takes, call)) };
}

/** Several kinds of methods have the same paths: what is enabled at one decides. */
export type ByType = Partial<Readonly<Record<AuthType, MethodHandler>>>;

async function chosen(
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

/** What an operator asks of a method. */
export function methodOperation(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  byType: ByType,
  more: Pick<GuardedOperation, 'where' | 'adds' | 'sameAs'> = {},
): GuardedOperation {
  return {
    name,
    access: 'token',
    capability,
    byType,
    ...more,
    run: async ({ services }, call) => {
      const [handler, mount] = await chosen(services, call, byType);
      return handler.answer({ services, mount }, call);
    },
  };
}

/** What somebody asks who has no token yet. What is shown as one is not looked at. */
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
      const [handler, mount] = await chosen(services, call, byType);
      return handler.answer({ services, mount }, call);
    },
  };
}

/** The paths of a method: `:method` stands for where it is enabled. */
export const methodRoute = (path: string, operations: Route['operations']): Route => ({
  path: `auth/:method/${path}`,
  names: { name: loginName },
  accepts: ({ method }) => method !== 'token',
  operations,
});
