import { dataReply, noContent, writtenReply } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import { tokenReply } from './auth-json.ts';
import { loginOperation, type MethodHandler, methodOperation, methodRoute } from './auth-method.ts';
import { tokenFields, tokenSettingsJson, tokenSettingsOf } from './login-fields.ts';
import type { Call, Route } from './operation.ts';

const nameIn = ({ params }: Call): string => params['name'] ?? '';
const named = ({ params }: Call): Readonly<Record<string, string>> => ({ name: params['name'] ?? '' });

const write: MethodHandler = async ({ service, mount }, call) => {
  const { values, warnings } = fields({ name: 'string', password: 'string', ...tokenFields }, call.body, named(call));
  await service.logins.userpass.write(mount, nameIn(call), { password: values.password, token: tokenSettingsOf(values) });
  return writtenReply(warnings);
};

const writePassword: MethodHandler = async ({ service, mount }, call) => {
  const { values, warnings } = fields({ name: 'string', password: 'string' }, call.body, named(call));
  await requireUser({ service, mount }, call);
  if (values.password === undefined) throw new RequestError('invalid_request', 'missing password');
  await service.logins.userpass.write(mount, nameIn(call), { password: values.password, token: {} });
  return writtenReply(warnings);
};

const writePolicies: MethodHandler = async ({ service, mount }, call) => {
  const { values, warnings } = fields({ name: 'string', ...tokenFields }, call.body, named(call));
  await requireUser({ service, mount }, call);
  const { policies } = tokenSettingsOf(values);
  await service.logins.userpass.write(mount, nameIn(call), { token: { policies } });
  return writtenReply(warnings);
};

async function requireUser({ service, mount }: Parameters<MethodHandler>[0], call: Call) {
  const found = await service.logins.userpass.users.find(mount.id, nameIn(call));
  if (found === undefined) throw new RequestError('not_found', '');
  return found.value;
}

const read: MethodHandler = async (context, call) =>
  dataReply(JSON.stringify(tokenSettingsJson((await requireUser(context, call)).token)));

const remove: MethodHandler = async ({ service, mount }, call) => {
  await service.logins.userpass.users.delete(mount.id, nameIn(call));
  return noContent;
};

const list: MethodHandler = async ({ service, mount }) => {
  const keys = await service.logins.userpass.users.list(mount.id);
  if (keys.length === 0) throw new RequestError('not_found', '');
  return dataReply(JSON.stringify({ keys }));
};

const login = loginOperation({
  userpass: async ({ service, mount }, call) => {
    const { values, warnings } = fields({ name: 'string', password: 'string' }, call.body, named(call));
    if (values.password === undefined || values.password === '') throw new RequestError('invalid_request', 'missing password');
    const granted = await service.logins.userpass.login(
      { mount, path: call.path, address: call.address },
      nameIn(call),
      values.password,
    );
    return tokenReply(granted, warnings);
  },
});

/** Logins by name and password, and the users who have them. */
export const userpassRoutes: readonly Route[] = [
  methodRoute('users', { LIST: methodOperation('userpass-list', 'list', { userpass: list }) }),
  methodRoute('users/:name', {
    GET: methodOperation('userpass-read', 'read', { userpass: read }),
    POST: methodOperation('userpass-write', 'update', { userpass: write }),
    DELETE: methodOperation('userpass-delete', 'delete', { userpass: remove }),
  }),
  methodRoute('users/:name/password', { POST: methodOperation('userpass-password', 'update', { userpass: writePassword }) }),
  methodRoute('users/:name/policies', { POST: methodOperation('userpass-policies', 'update', { userpass: writePolicies }) }),
  methodRoute('login/:name', { POST: login }),
];
