import type { Principal } from '@transitd/access';
import { permissionDenied } from '@transitd/http';
import type { Call } from '../operation/operation.ts';
import { mayRun, withinPage } from '../operation/rights.ts';
import type { CompleteRequest } from './request.ts';

/** A call that the caller's policies grant, with the page that they let a list show. */
export interface Authorized {
  readonly principal: Principal;
  readonly granted: Call;
}

/**
 * The stage that asks the policies. The token is looked up again where it, or any policy, has changed since it was authenticated: what was
 * answered while the body came in is in force. A use of the token counts even when the policies refuse it.
 * @throws RequestError `permission_denied`
 */
export async function authorize(
  { services, token, principal: found, epoch, operation, nameAt }: CompleteRequest,
  call: Call,
): Promise<Authorized> {
  // Where a mount was removed or has moved while the body came in, that is in force.
  if (services.mounts.changing !== undefined) await services.mounts.changing;
  let principal: Principal | undefined = found;
  if (services.tokens.epoch !== epoch || principal.goodUntilMs <= services.tokens.nowMs)
    principal = await services.tokens.authenticate(token);
  if (principal !== undefined && principal.record.usesLeft !== 0) principal = await services.registry.spend(principal);
  if (principal === undefined) throw permissionDenied();
  const may = mayRun(principal, operation, call, nameAt);
  const granted = (may instanceof Promise ? await may : may) && withinPage(principal, operation, call);
  if (granted === false || granted === undefined) throw permissionDenied();
  return { principal, granted };
}
