import { type Body, object, RequestError, text } from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { keptIfOmitted } from '../operation/kept-fields.ts';
import { found, type Params, type Route } from '../operation/operation.ts';
import { recordOperations } from '../operation/records.ts';
import { loginOperation, type MethodContext, methodHandler, methodOperation, methodRoute } from './auth-method.ts';
import { tokenFields, tokenSettingsJson, tokenSettingsMembers, tokenSettingsOf } from './login-fields.ts';
import { tokenReply } from './token-json.ts';

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
  find: async ({ services, mount }: MethodContext, name) => {
    const user = await services.logins.userpass.users.find(mount.id, name);
    return user && tokenSettingsJson(user.value.token);
  },
  list: ({ services, mount }) => services.logins.userpass.users.list(mount.id),
  write: ({ services, mount }, name, values) => {
    refuseHash(values.password_hash);
    return services.logins.userpass.write(mount, name, { password: values.password, token: tokenSettingsOf(values) });
  },
  delete: ({ services, mount }, name) => services.logins.userpass.users.delete(mount.id, name),
});
const { name } = users.read.takes;

const requireUser = async ({ services, mount }: MethodContext, name: string) =>
  found(await services.logins.userpass.users.find(mount.id, name));

const writePassword = methodHandler({
  about: 'Change the password of a user',
  takes: { name, password: { ...password, required: true }, password_hash: passwordHash },
  answers: answers.written,
  run: async ({ services, mount }, { values }) => {
    refuseHash(values.password_hash);
    await requireUser({ services, mount }, values.name);
    if (values.password === undefined) throw new RequestError('invalid_request', 'missing password');
    await services.logins.userpass.write(mount, values.name, { password: values.password, token: {} });
  },
});

const writePolicies = methodHandler({
  about: 'Set the policies of a user; other fields keep their values',
  takes: { name, ...keptIfOmitted(tokenFields) }, // all are accepted, but only the policies have an effect
  answers: answers.written,
  run: async ({ services, mount }, { values }) => {
    await requireUser({ services, mount }, values.name);
    const { policies } = tokenSettingsOf(values);
    await services.logins.userpass.write(mount, values.name, { token: { policies } });
  },
});

const login = loginOperation({
  userpass: methodHandler({
    about: 'Log in with a user name and a password',
    takes: { name, password: { ...password, required: true } },
    answers: answers.issued,
    run: async ({ services, mount }, { values: { name, password = '' }, path, address }) => {
      if (password === '') throw new RequestError('invalid_request', 'missing password');
      return tokenReply(await services.logins.userpass.login({ mount, path, address }, name, password));
    },
  }),
});

/** Returns the paths of the single fields that a write of a whole user sets; see `rolePathsIn`. */
const userPathsIn = ({ method, name }: Params, body: Body = {}): readonly string[] =>
  Object.keys(body).flatMap((member) => {
    if (member === 'password') return [`auth/${method}/users/${name}/password`];
    return member === 'token_policies' || member === 'policies' ? [`auth/${method}/users/${name}/policies`] : [];
  });

/** Returns the path of the whole user, because a write there can make the same change. */
const wholeUser = ({ method, name }: Params): readonly string[] => [`auth/${method}/users/${name}`];

/** Routes of users and of the login with a password. */
export const userpassRoutes: readonly Route[] = [
  methodRoute('users', { LIST: methodOperation('userpass-list', 'list', { userpass: users.list }) }),
  methodRoute('users/:name', {
    GET: methodOperation('userpass-read', 'read', { userpass: users.read }),
    POST: methodOperation('userpass-write', 'update', { userpass: users.write }, { sameAs: userPathsIn }),
    DELETE: methodOperation('userpass-delete', 'delete', { userpass: users.remove }),
  }),
  methodRoute('users/:name/password', {
    POST: methodOperation('userpass-password', 'update', { userpass: writePassword }, { sameAs: wholeUser }),
  }),
  methodRoute('users/:name/policies', {
    POST: methodOperation('userpass-policies', 'update', { userpass: writePolicies }, { sameAs: wholeUser }),
  }),
  methodRoute('login/:name', { POST: login }),
];
