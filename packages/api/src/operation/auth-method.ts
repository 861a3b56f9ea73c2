import type { Capability, Issued, Login, MethodType, OpenedMethod, StoredMount } from '@transitd/access';
import type { FieldSchema, Fields, Verb } from '@transitd/http';
import type { Services } from '@transitd/node';
import { issued } from './answers.ts';
import { type GuardedOperation, none, type OperationDescription } from './operation.ts';
import type { Handler } from './records.ts';
import { tokenReply } from './token-json.ts';

/** What an operation of an auth method works with. */
export interface MethodContext<Opened extends OpenedMethod = OpenedMethod> {
  readonly services: Services;
  /** The auth method in the path. */
  readonly mount: StoredMount;
  /** The records and logins of the methods of its type. */
  readonly method: Opened;
}

/** Declares an operation of an auth method apart from its path and its rights. */
export const methodHandler = <Opened extends OpenedMethod, S extends FieldSchema = Record<never, never>>(
  declared: OperationDescription<S> & Pick<Handler<MethodContext<Opened>, S>, 'run'>,
): Handler<MethodContext<Opened>, S> => ({ takes: none<S>(), ...declared });

/** An operation of an auth method at one of its paths. */
export interface MethodOperation {
  /** Its name, without the prefix that `methodRoutes` gives it. */
  readonly name: string;
  /** The required capability; `open` for a login, which needs no token and ignores a token header. */
  readonly capability: Capability | 'open';
  /** Quotas can limit the logins of one role. */
  readonly limitsRoles?: boolean;
  readonly where?: GuardedOperation['where'];
  readonly sameAs?: GuardedOperation['sameAs'];
  readonly handler: Handler<MethodContext, FieldSchema>;
}

export const methodOperation = (
  name: string,
  capability: Capability,
  handler: MethodOperation['handler'],
  more: Pick<MethodOperation, 'where' | 'sameAs'> = {},
): MethodOperation => ({ name, capability, handler, ...more });

/** Declares the login of an auth method. */
export const login = <Opened extends OpenedMethod, S extends FieldSchema>({
  roleOf,
  run,
  ...declared
}: Omit<OperationDescription<S>, 'answers'> & {
  readonly takes: S;
  /** Returns the name of the role, for its quotas and for `run`; absent if logins have no role. */
  roleOf?(context: MethodContext<Opened>, values: Fields<S>['values'], login: Login): string | Promise<string>;
  /** @param role - what `roleOf` returned; empty without it */
  run(method: Opened, login: Login, values: Fields<S>['values'], role: string): Promise<Issued>;
}): MethodOperation => ({
  name: 'login',
  capability: 'open',
  limitsRoles: roleOf !== undefined,
  handler: methodHandler<Opened, S>({
    ...declared,
    answers: issued,
    run: async (context, { values, path, address, certificate }) => {
      const request: Login = { mount: context.mount, path, address, certificate };
      const role = (await roleOf?.(context, values, request)) ?? '';
      if (roleOf !== undefined) context.services.quotas.admitLogin(path, role, address);
      return tokenReply(await run(context.method, request, values, role));
    },
  }),
});

/** The operations of an auth method, by path below the method and by verb. `:name` matches one segment. */
export type MethodPaths = Readonly<Record<string, Partial<Readonly<Record<Verb, MethodOperation>>>>>;

/**
 * Returns the paths of records such as users.
 * @param records - what `recordOperations` returns
 * @param more - the prefix of the names of the operations, and `sameAs` of a write
 */
export const recordPaths = (
  path: string,
  { list, read, write, remove }: Readonly<Record<'list' | 'read' | 'write' | 'remove', MethodOperation['handler']>>,
  { name = '', ...more }: { readonly name?: string } & Pick<MethodOperation, 'sameAs'> = {},
): MethodPaths => ({
  [path]: { LIST: methodOperation(`${name}list`, 'list', list) },
  [`${path}/:name`]: {
    GET: methodOperation(`${name}read`, 'read', read),
    POST: methodOperation(`${name}write`, 'update', write, more),
    DELETE: methodOperation(`${name}delete`, 'delete', remove),
  },
});

/** Returns the path of the configuration of a method. */
export const configPaths = (read: MethodOperation['handler'], write: MethodOperation['handler']): MethodPaths => ({
  config: { GET: methodOperation('config-read', 'read', read), POST: methodOperation('config-write', 'update', write) },
});

/** A type of auth methods, whole: its operations and fields, its login, its records and their sweep. */
export interface AuthMethod extends MethodType {
  readonly paths: MethodPaths;
}
