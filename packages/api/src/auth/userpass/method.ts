import { type Body, object, RequestError, text } from '@transitd/http';
import * as answers from '../../operation/answers.ts';
import {
  type AuthMethod,
  login,
  type MethodContext,
  methodHandler,
  methodOperation,
  recordPaths,
} from '../../operation/auth-method.ts';
import { keptIfOmitted } from '../../operation/kept-fields.ts';
import { tokenFields, tokenSettingsJson, tokenSettingsMembers, tokenSettingsOf } from '../../operation/login-fields.ts';
import { found, type Params } from '../../operation/operation.ts';
import { recordOperations } from '../../operation/records.ts';
import { Userpass } from './logins.ts';
import type { PasswordWork } from './passwords.ts';

type Here = MethodContext<Userpass>;

const password = text('Password, at least 1 character');
/** Vault takes a bcrypt hash here. If it were ignored, the user would keep a password that the writer believes to be replaced. */
const passwordHash = text('Not supported: send `password`');

function refuseHash(hash: string | undefined): void {
  if (hash) throw new RequestError('invalid_request', 'password_hash is not supported: send the password, which is hashed here');
}

const users = recordOperations({
  noun: 'user',
  name: 'User name, case-insensitive',
  takes: { password, password_hash: passwordHash, ...tokenFields },
  shown: object(tokenSettingsMembers),
  find: async ({ method, mount }: Here, name) => {
    const user = await method.users.find(mount.id, name);
    return user && tokenSettingsJson(user.value.token);
  },
  list: ({ method, mount }) => method.users.list(mount.id),
  write: ({ method, mount }, name, values) => {
    refuseHash(values.password_hash);
    return method.write(mount, name, { password: values.password, token: tokenSettingsOf(values) });
  },
  delete: ({ method, mount }, name) => method.users.delete(mount.id, name),
});
const { name } = users.read.takes;

const requireUser = async ({ method, mount }: Here, name: string) => found(await method.users.find(mount.id, name));

const writePassword = methodHandler({
  about: 'Change the password of a user',
  takes: { name, password: { ...password, required: true }, password_hash: passwordHash },
  answers: answers.written,
  run: async (context: Here, { values }) => {
    refuseHash(values.password_hash);
    await requireUser(context, values.name);
    if (values.password === undefined) throw new RequestError('invalid_request', 'missing password');
    await context.method.write(context.mount, values.name, { password: values.password, token: {} });
  },
});

const writePolicies = methodHandler({
  about: 'Set the policies of a user; other fields keep their values',
  takes: { name, ...keptIfOmitted(tokenFields) }, // all are accepted, but only the policies have an effect
  answers: answers.written,
  run: async (context: Here, { values }) => {
    await requireUser(context, values.name);
    const { policies } = tokenSettingsOf(values);
    await context.method.write(context.mount, values.name, { token: { policies } });
  },
});

const enter = login({
  about: 'Log in with a user name and a password',
  takes: { name, password: { ...password, required: true } },
  run: async (method: Userpass, request, { name, password = '' }) => {
    if (password === '') throw new RequestError('invalid_request', 'missing password');
    return method.login(request, name, password);
  },
});

/** Returns the paths of the single fields that a write of a whole user sets; see `GuardedOperation.sameAs`. */
const userPathsIn = ({ method, name }: Params, body: Body = {}): readonly string[] =>
  Object.keys(body).flatMap((member) => {
    if (member === 'password') return [`auth/${method}/users/${name}/password`];
    return member === 'token_policies' || member === 'policies' ? [`auth/${method}/users/${name}/policies`] : [];
  });

/** Returns the path of the whole user, because a write there can make the same change. */
const wholeUser = ({ method, name }: Params): readonly string[] => [`auth/${method}/users/${name}`];

/** Logins by user name and password. @param work - cost of hashing a password */
export const userpassWith = (work?: PasswordWork): AuthMethod => ({
  type: 'userpass',
  open: (services) => new Userpass(services, work),
  paths: {
    ...recordPaths('users', users, { sameAs: userPathsIn }),
    'users/:name/password': { POST: methodOperation('password', 'update', writePassword, { sameAs: wholeUser }) },
    'users/:name/policies': { POST: methodOperation('policies', 'update', writePolicies, { sameAs: wholeUser }) },
    'login/:name': { POST: enter },
  },
});

export const userpass = userpassWith();
