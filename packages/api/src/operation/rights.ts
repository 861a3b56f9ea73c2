import {
  allows,
  allowsItems,
  hasParameterRules,
  isDenied,
  isNameDenied,
  type NamePlace,
  type ParameterReading,
  type Principal,
  pageAllowed,
} from '@transitd/access';
import { integerOf, withinCidrs } from '@transitd/process';
import type { Call, GuardedOperation } from './operation.ts';
import { readingOf } from './parameter-reading.ts';

/** Returns whether nothing but policies limits a token: its uses are not counted, and it is used from where it may be. */
export const isOrdinary = ({ record }: Principal, address: string): boolean =>
  record.usesLeft === 0 && withinCidrs(record.boundCidrs, address);

const verbCapability = { GET: 'read', LIST: 'list', DELETE: 'delete', POST: 'update' } as const;

/**
 * Returns whether the caller's policies allow the call with these members. Both the path as written and its canonical form must be allowed,
 * so that neither a grant nor a denial depends on the spelling of a name. In addition, no equivalent path may be denied.
 * @param place - place of the case-insensitive name in the path, if any
 */
export function mayRun(
  principal: Principal,
  operation: GuardedOperation,
  call: Call,
  place?: NamePlace,
): boolean | Promise<boolean> {
  if (principal.root || operation.anyRights === true) return true;
  if (place !== undefined && isNameDenied(principal, call.path, place)) return false;
  if (principal.acl.hasDenials && isDeniedElsewhere(principal, operation, call, place)) return false;
  const { path, written, body } = call;
  const paths = written === path ? [path] : [path, written];
  const reading = hasParameterRules(principal) ? readingOf(operation, call) : undefined;
  if (!paths.every((each) => grants(principal, operation, call, each, reading))) return false;
  // Batches are checked item by item in time slices; everything else is decided at once.
  const hasItems = call.verb === 'POST' && [...(reading?.inner ?? [])].some(([name]) => Array.isArray(body[name]));
  return reading === undefined || !hasItems || itemsAllowed(principal, paths, call, reading);
}

async function itemsAllowed(
  principal: Principal,
  paths: readonly string[],
  { body }: Call,
  reading: ParameterReading,
): Promise<boolean> {
  for (const path of paths) if (!(await allowsItems(principal, path, body, reading))) return false;
  return true;
}

/**
 * Returns whether an equivalent path is denied. In the equivalent paths too, a case-insensitive name is compared case-insensitively; it is
 * at the same place there, or at the end.
 * @param place - place of the case-insensitive name in the path, if any
 */
export function isDeniedElsewhere(
  principal: Principal,
  { sameAs }: GuardedOperation,
  { params, body }: Pick<Call, 'params'> & Partial<Pick<Call, 'body'>>,
  place?: NamePlace,
): boolean {
  return (sameAs?.(params, body) ?? []).some((path) => {
    if (isDenied(principal, path)) return true;
    if (place === undefined) return false;
    const atEnd = { ...place, first: path.split('/').length - place.count };
    return isNameDenied(principal, path, place) || isNameDenied(principal, path, atEnd);
  });
}

function grants(
  principal: Principal,
  { capability, sudo }: GuardedOperation,
  { verb, body, wrapTtlS = 0 }: Call,
  path: string,
  reading: ParameterReading | undefined,
): boolean {
  if (sudo === true && !allows(principal, 'sudo', verb === 'LIST' ? `${path}/` : path)) return false;
  if (capability !== undefined) return allows(principal, capability, path, body, wrapTtlS, reading);
  const mayCreate = (): boolean => verb === 'POST' && allows(principal, 'create', path, body, wrapTtlS, reading);
  return allows(principal, verbCapability[verb], path, body, wrapTtlS, reading) || mayCreate();
}

/**
 * Limits a list to the page size that the caller's policies allow. Returns other calls unchanged. Returns undefined if the call asks for a
 * larger page.
 */
export function withinPage(principal: Principal, call: Call): Call | undefined {
  if (call.verb !== 'LIST') return call;
  const pages = [call.path, call.written].flatMap((path) => pageAllowed(principal, path) ?? []);
  if (pages.length === 0) return call;
  const max = Math.min(...pages.map((page) => page.max));
  const requested = call.body['limit'] ?? undefined;
  if (requested === undefined && pages.some(({ isRequired }) => isRequired)) return undefined;
  if (requested === undefined || requested === 'max') return { ...call, body: withLimit(call.body, max) };
  const limit = typeof requested === 'string' ? integerOf(requested) : requested;
  return typeof limit === 'number' && limit >= 1 && limit <= max ? call : undefined;
}

const withLimit = (body: Call['body'], limit: number): Call['body'] => Object.assign(Object.create(null), body, { limit });
