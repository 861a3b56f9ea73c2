import { allows, type Capability } from '@transitd/access';
import type { Context } from './operation.ts';

/**
 * Returns a function that finds out whether the caller of a stream may still read it: the node is unsealed, the token is valid, and the
 * token's policies grant the capabilities on the path.
 */
export const continuedRights =
  (
    { node, services, token }: Pick<Context, 'node' | 'services' | 'token'>,
    path: string,
    ...capabilities: readonly Capability[]
  ) =>
  async (): Promise<boolean> => {
    if (node.services !== services) return false; // sealed
    const principal = await services.tokens.authenticate(token);
    return principal !== undefined && capabilities.every((capability) => allows(principal, capability, path));
  };
