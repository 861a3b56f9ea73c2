import type { Principal } from '@transitd/access';
import { permissionDenied } from '@transitd/http';
import type { Call } from '../operation/operation.ts';
import { mayRun, withinPage } from '../operation/rights.ts';
import type { CompleteRequest } from './request.ts';

/** A call that the caller's policies allow, with their page size applied to lists. */
export interface Authorized {
  readonly principal: Principal;
  readonly granted: Call;
}

/**
 * The stage that checks the policies. If the token or any policy has changed since authentication, the token is looked up again, so that
 * changes made while the body arrived take effect. A request uses up one use of the token even if the policies refuse it.
 * @throws RequestError `permission_denied`
 */
export async function authorize(
  { services, token, principal: found, epoch, operation, namePlace }: CompleteRequest,
  call: Call,
): Promise<Authorized> {
  // If a mount was removed or moved while the body arrived, the change takes effect.
  if (services.mounts.changing !== undefined) await services.mounts.changing;
  let principal: Principal | undefined = found;
  if (services.tokens.epoch !== epoch || principal.goodUntilMs <= services.tokens.nowMs)
    principal = await services.tokens.authenticate(token);
  if (principal !== undefined && principal.record.usesLeft !== 0) principal = await services.registry.spend(principal);
  if (principal === undefined) throw permissionDenied();
  const may = mayRun(principal, operation, call, namePlace);
  const granted = (may instanceof Promise ? await may : may) && withinPage(principal, operation, call);
  if (granted === false || granted === undefined) throw permissionDenied();
  return { principal, granted };
}
