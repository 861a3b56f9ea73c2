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
 * The stage that checks the policies. The token is looked up again if it or any policy has changed since authentication: changes made while
 * the body arrived are in force. A use of the token counts even if the policies refuse the request.
 * @throws RequestError `permission_denied`
 */
export async function authorize(
  { services, token, principal: found, epoch, operation, nameAt }: CompleteRequest,
  call: Call,
): Promise<Authorized> {
  // A removal or move of a mount while the body arrived is in force.
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
