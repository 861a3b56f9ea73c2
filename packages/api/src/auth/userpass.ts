import { type Body, dataReply, noContentReply, object, RequestError, text, writtenReply } from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { keptIfOmitted } from '../operation/kept-fields.ts';
import { type Call, found, namesReply, type Params, pathParam, type Route } from '../operation/operation.ts';
import { loginOperation, type MethodContext, methodHandler, methodOperation, methodRoute } from './auth-method.ts';
import { tokenFields, tokenSettingsJson, tokenSettingsMembers, tokenSettingsOf } from './login-fields.ts';
import { tokenReply } from './token-json.ts';

type Named = Pick<Call, 'params'>;

const nameIn = (call: Named): string => pathParam(call, 'name');
const name = text('User name, case-insensitive', { required: true });
const password = text('Password, at least 1 character');
/** Vault takes a bcrypt hash here. If it were ignored, the user would keep a password that the writer believes to be replaced. */
const passwordHash = text('Not supported: send `password`');

function refuseHash(hash: string | undefined): void {
  if (hash) throw new RequestError('invalid_request', 'password_hash is not supported: send the password, which is hashed here');
}

const write = methodHandler({
  about: 'Create a user, or update the given fields of an existing one',
  takes: { name, password, password_hash: passwordHash, ...tokenFields },
  answers: answers.written,
  run: async ({ services, mount }, { values, warnings, ...call }) => {
    refuseHash(values.password_hash);
    await services.logins.userpass.write(mount, nameIn(call), { password: values.password, token: tokenSettingsOf(values) });
    return writtenReply(warnings);
  },
});

const writePassword = methodHandler({
  about: 'Change the password of a user',
  takes: { name, password: { ...password, required: true }, password_hash: passwordHash },
  answers: answers.written,
  run: async ({ services, mount }, { values, warnings, ...call }) => {
    refuseHash(values.password_hash);
    await requireUser({ services, mount }, call);
    if (values.password === undefined) throw new RequestError('invalid_request', 'missing password');
    await services.logins.userpass.write(mount, nameIn(call), { password: values.password, token: {} });
    return writtenReply(warnings);
  },
});

const writePolicies = methodHandler({
  about: 'Set the policies of a user; other fields keep their values',
  takes: { name, ...keptIfOmitted(tokenFields) }, // all are accepted, but only the policies have an effect
  answers: answers.written,
  run: async ({ services, mount }, { values, warnings, ...call }) => {
    await requireUser({ services, mount }, call);
    const { policies } = tokenSettingsOf(values);
    await services.logins.userpass.write(mount, nameIn(call), { token: { policies } });
    return writtenReply(warnings);
  },
});

const requireUser = async ({ services, mount }: MethodContext, call: Named) =>
  found(await services.logins.userpass.users.find(mount.id, nameIn(call))).value;

const read = methodHandler({
  about: 'Read a user',
  takes: { name },
  answers: answers.data(object(tokenSettingsMembers)),
  run: async (context, call) => dataReply(tokenSettingsJson((await requireUser(context, call)).token)),
});

const remove = methodHandler({
  about: 'Delete a user',
  takes: { name },
  answers: answers.written,
  run: async ({ services, mount }, call) => {
    await services.logins.userpass.users.delete(mount.id, nameIn(call));
    return noContentReply;
  },
});

const list = methodHandler({
  about: 'List user names',
  answers: answers.names,
  run: async ({ services, mount }) => namesReply(await services.logins.userpass.users.list(mount.id)),
});

const login = loginOperation({
  userpass: methodHandler({
    about: 'Log in with a user name and a password',
    takes: { name, password: { ...password, required: true } },
    answers: answers.issued,
    run: async ({ services, mount }, { values, warnings, ...call }) => {
      if (values.password === undefined || values.password === '') throw new RequestError('invalid_request', 'missing password');
      const granted = await services.logins.userpass.login(
        { mount, path: call.path, address: call.address },
        nameIn(call),
        values.password,
      );
      return tokenReply(granted, warnings);
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
  methodRoute('users', { LIST: methodOperation('userpass-list', 'list', { userpass: list }) }),
  methodRoute('users/:name', {
    GET: methodOperation('userpass-read', 'read', { userpass: read }),
    POST: methodOperation('userpass-write', 'update', { userpass: write }, { sameAs: userPathsIn }),
    DELETE: methodOperation('userpass-delete', 'delete', { userpass: remove }),
  }),
  methodRoute('users/:name/password', {
    POST: methodOperation('userpass-password', 'update', { userpass: writePassword }, { sameAs: wholeUser }),
  }),
  methodRoute('users/:name/policies', {
    POST: methodOperation('userpass-policies', 'update', { userpass: writePolicies }, { sameAs: wholeUser }),
  }),
  methodRoute('login/:name', { POST: login }),
];
