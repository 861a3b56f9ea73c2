import { loginName } from '@transitd/access';
import { text } from '@transitd/http';
import { issued } from '../operation/answers.ts';
import type { Route } from '../operation/operation.ts';
import { deleteAppRole, listAppRoles, readAppRole, writeAppRole } from './approle.ts';
import { tokenReply } from './auth-json.ts';
import { deleteJwtRole, listJwtRoles, readJwtRole, writeJwtRole } from './jwt.ts';
import { handler, loginOperation, methodOperation, methodRoute } from './login-method.ts';

const login = loginOperation({
  approle: handler({
    about: 'a token for the ids of a role',
    takes: { role_id: text('of the role', { required: true }), secret_id: text('one of its secret ids, where it needs one') },
    answers: issued,
    run: async ({ services, mount }, { values, warnings, path, address }) => {
      const { role_id: roleId = '', secret_id: secretId = '' } = values;
      services.quotas.admitLogin(path, await services.logins.approle.roleNameOf(mount, roleId), address);
      return tokenReply(await services.logins.approle.login({ mount, path, address }, roleId, secretId), warnings);
    },
  }),
  jwt: handler({
    about: 'a token for a signed one of somebody else',
    takes: {
      role: text('by which it is looked at; the default one when absent'),
      jwt: text('the signed token', { required: true }),
    },
    answers: issued,
    run: async ({ services, mount }, { values, warnings, path, address }) => {
      const { role = '', jwt = '' } = values;
      services.quotas.admitLogin(path, loginName(role), address);
      return tokenReply(await services.logins.jwt.login({ mount, path, address }, role, jwt), warnings);
    },
  }),
});

const list = methodOperation('auth-role-list', 'list', { approle: listAppRoles, jwt: listJwtRoles });

/** Roles of logins, and the login by one. */
export const authRoleRoutes: readonly Route[] = [
  methodRoute('role', { LIST: list }),
  methodRoute('role/:name', {
    GET: methodOperation('auth-role-read', 'read', { approle: readAppRole, jwt: readJwtRole }),
    POST: methodOperation('auth-role-write', 'update', { approle: writeAppRole, jwt: writeJwtRole }),
    DELETE: methodOperation('auth-role-delete', 'delete', { approle: deleteAppRole, jwt: deleteJwtRole }),
  }),
  methodRoute('login', { POST: login }),
];
