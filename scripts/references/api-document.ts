import { authMethods } from '../../packages/api/src/auth/auth-methods.ts';
import { openApi } from '../../packages/api/src/openapi/openapi.ts';
import { allRoutes } from '../../packages/api/src/routes.ts';
import type { ApiDocument } from './api-reference.ts';

const notRendered = (): Promise<never> => Promise.reject(new Error('no request runs here'));
const methods = authMethods.map(({ type }) => ({ path: type, type }));

/** Returns the OpenAPI document with one engine, and each auth method, at the path that is its type. */
export async function apiDocument(): Promise<ApiDocument> {
  const routes = allRoutes({ prometheus: notRendered, json: notRendered });
  const mounts = [{ path: 'transit', type: 'transit' }];
  const text = await openApi({ routes, version: '', mounts, methods, shows: () => true }, () => undefined);
  return JSON.parse(text) as ApiDocument;
}
