import { loginName } from '@transitd/access';
import { credential, text } from '@transitd/http';
import { issued } from '../operation/answers.ts';
import type { Route } from '../operation/operation.ts';
import { appRoles } from './approle.ts';
import { rolePathsIn } from './approle-fields.ts';
import { loginOperation, methodHandler, methodOperation, methodRoute } from './auth-method.ts';
import { jwtRoles } from './jwt.ts';
import { tokenReply } from './token-json.ts';

const login = loginOperation({
  approle: methodHandler({
    about: 'Log in with a role ID and a secret ID',
    takes: { role_id: credential('Role ID', { required: true }), secret_id: credential('Secret ID, if the role requires one') },
    answers: issued,
    run: async ({ services, mount }, { values, path, address }) => {
      const { role_id: roleId = '', secret_id: secretId = '' } = values;
      services.quotas.admitLogin(path, await services.logins.approle.roleNameOf(mount, roleId), address);
      return tokenReply(await services.logins.approle.login({ mount, path, address }, roleId, secretId));
    },
  }),
  jwt: methodHandler({
    about: 'Log in with a JWT',
    takes: {
      role: text('Role to log in with; `default_role` if omitted'),
      jwt: credential('Signed JWT', { required: true }),
    },
    answers: issued,
    run: async ({ services, mount }, { values, path, address }) => {
      const { role = '', jwt = '' } = values;
      services.quotas.admitLogin(path, loginName(role), address);
      return tokenReply(await services.logins.jwt.login({ mount, path, address }, role, jwt));
    },
  }),
});

/** Returns the operation on a role of either type. */
const roleOperation = (operation: 'read' | 'list' | 'write' | 'remove') => ({
  approle: appRoles[operation],
  jwt: jwtRoles[operation],
});

/** Routes that `approle` and `jwt` share: roles, and the login with a role. */
export const authRoleRoutes: readonly Route[] = [
  methodRoute('role', { LIST: methodOperation('auth-role-list', 'list', roleOperation('list')) }),
  methodRoute('role/:name', {
    GET: methodOperation('auth-role-read', 'read', roleOperation('read')),
    POST: methodOperation('auth-role-write', 'update', roleOperation('write'), { sameAs: rolePathsIn }),
    DELETE: methodOperation('auth-role-delete', 'delete', roleOperation('remove')),
  }),
  methodRoute('login', { POST: login }),
];
