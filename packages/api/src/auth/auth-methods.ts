import type { AuthMethod } from '../operation/auth-method.ts';
import { approle } from './approle/method.ts';
import { cert } from './cert/method.ts';
import { jwt } from './jwt/method.ts';
import { kubernetes } from './kubernetes/method.ts';
import { methodRoutes } from './method-routes.ts';
import { userpass } from './userpass/method.ts';

/** The auth methods. A new one is a folder with its declaration, and its line here. */
export const authMethods: readonly AuthMethod[] = [userpass, approle, jwt, kubernetes, cert];

/** Their types, sorted. */
export const authTypes: readonly string[] = authMethods.map(({ type }) => type).sort();

/** The types whose logins quotas can limit by role, sorted. */
export const roleTypes: readonly string[] = authMethods
  .filter(({ paths }) => Object.values(paths).some(({ POST }) => POST?.limitsRoles))
  .map(({ type }) => type)
  .sort();

export const authMethodRoutes = methodRoutes(authMethods);
