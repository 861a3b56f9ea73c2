import { allows, type Principal } from '@transitd/access';
import type { Call, GuardedOperation } from '../api/operation.ts';

const verbCapability = { GET: 'read', LIST: 'list', DELETE: 'delete', POST: 'update' } as const;

/** Whether the caller's policies let it do this, on this path and with these members. */
export function mayRun(
  principal: Principal,
  { capability, sudo, anyRights }: GuardedOperation,
  { verb, path, body, wrapTtlS = 0 }: Call,
): boolean {
  if (anyRights === true) return true;
  if (sudo === true && !allows(principal, 'sudo', verb === 'LIST' ? `${path}/` : path)) return false;
  if (capability !== undefined) return allows(principal, capability, path, body, wrapTtlS);
  const mayCreate = (): boolean => verb === 'POST' && allows(principal, 'create', path, body, wrapTtlS);
  return allows(principal, verbCapability[verb], path, body, wrapTtlS) || mayCreate();
}
