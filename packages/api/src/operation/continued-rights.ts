import { allows, type Capability } from '@transitd/access';
import type { Call, Context } from './operation.ts';
import { foreignUse } from './rights.ts';

/**
 * Returns a function that finds out whether the caller of a stream may still read it: the node is unsealed, the token is valid and
 * may be used from there, and its policies grant the capabilities on the path.
 */
export const continuedRights =
  (
    { node, services, token }: Pick<Context, 'node' | 'services' | 'token'>,
    call: Pick<Call, 'path' | 'address' | 'certificate'>,
    ...capabilities: readonly Capability[]
  ) =>
  async (): Promise<boolean> => {
    if (node.services !== services) return false; // sealed
    const principal = await services.tokens.authenticate(token);
    if (principal === undefined || foreignUse(principal, call, services.tokens.nowMs) !== undefined) return false;
    return capabilities.every((capability) => allows(principal, capability, call.path));
  };
