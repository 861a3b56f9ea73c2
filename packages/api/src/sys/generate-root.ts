import type { Route } from '../operation/operation.ts';
import { ceremonyRoutes } from './token-ceremony.ts';

/** Routes that generate a root token from key shares or recovery shares, for use when no root token is left. */
export const generateRootRoutes: readonly Route[] = ceremonyRoutes('sys/generate-root', {
  name: 'generate-root',
  about: 'root token generation',
  generation: (barrier) => barrier.rootGeneration,
  create: async ({ services }) => {
    const { token, record } = await services.registry.createRoot();
    return { token, issued: { token, accessor: record.accessor } };
  },
});
