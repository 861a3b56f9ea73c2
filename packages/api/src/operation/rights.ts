import {
  type Capability,
  type Denial,
  denial,
  grants,
  hasParameterRules,
  itemDenial,
  laterDenial,
  type NamePlace,
  nameDenial,
  type ParameterReading,
  type Principal,
  pageAllowed,
  pathDenial,
} from '@transitd/access';
import { integerOf, isCertificate, withinCidrs } from '@transitd/process';
import type { PolicyRule, RefusedBy } from '@transitd/storage-fsm';
import type { Call, GuardedOperation } from './operation.ts';
import { readingOf } from './parameter-reading.ts';

/** Where a request came from. */
type Origin = Pick<Call, 'address' | 'certificate'>;

/** Returns why a token may not be used from there; undefined if its bound CIDR blocks and certificate allow it. */
export function foreignUse({ record }: Principal, { address, certificate }: Origin, nowMs: number): RefusedBy | undefined {
  if (!withinCidrs(record.boundCidrs, address)) return { constraint: 'bound_cidrs' };
  if (record.boundCertificate === '' || isCertificate(record.boundCertificate, certificate, nowMs)) return undefined;
  return { constraint: 'bound_certificate' };
}

/** Returns whether nothing but policies limits a token: its uses are not counted, and it is used from where it may be. */
export const isOrdinary = (principal: Principal, origin: Origin, nowMs: number): boolean =>
  principal.record.usesLeft === 0 && foreignUse(principal, origin, nowMs) === undefined;

/** The capabilities of which a request needs one, if its operation names none. */
const verbCapabilities: Readonly<Record<Call['verb'], readonly [Capability, ...Capability[]]>> = {
  GET: ['read'],
  LIST: ['list'],
  DELETE: ['delete'],
  POST: ['update', 'create'],
};

/**
 * Returns the call with the page size that the caller's policies allow, or why they refuse it. Both the path as written and its canonical
 * form must be allowed, so that neither a grant nor a denial depends on the spelling of a name. In addition, no equivalent path may be
 * denied.
 * @param place - place of the case-insensitive name in the path, if any
 */
export function decide(
  principal: Principal,
  operation: GuardedOperation,
  call: Call,
  place?: NamePlace,
): Call | Denial | Promise<Call | Denial> {
  if (principal.root || operation.anyRights === true) return withinPage(principal, call);
  const denied = place && nameDenial(principal, call.verb === 'LIST' ? `${call.path}/` : call.path, place);
  if (denied !== undefined) return denied;
  const elsewhere = principal.acl.hasDenials ? equivalentDenial(principal, operation, call, place) : undefined;
  if (elsewhere !== undefined) return elsewhere;
  const reading = hasParameterRules(principal) ? readingOf(operation, call) : undefined;
  for (const path of formsOf(call)) {
    const refused = formDenial(principal, operation, call, path, reading);
    if (refused !== undefined) return refused;
  }
  const deleted = operation.deletesLater?.(call.params);
  const kept = deleted === undefined ? undefined : laterDenial(principal, 'delete', deleted, call.body, reading);
  if (kept !== undefined) return kept;
  // Batches are checked item by item in time slices; everything else is decided at once.
  const hasItems = call.verb === 'POST' && [...(reading?.inner ?? [])].some(([name]) => Array.isArray(call.body[name]));
  return reading === undefined || !hasItems ? withinPage(principal, call) : withinItems(principal, call, reading);
}

/** Returns why the policies do not let a node run `operation` later, because of this call. */
export const denialLater = (
  principal: Principal,
  { capability, path }: { readonly capability: Capability; readonly path: string },
  operation: GuardedOperation,
  call: Pick<Call, 'params' | 'body'>,
): Denial | undefined => laterDenial(principal, capability, path, call.body, readingOf(operation, call));

export const isDenial = (decided: Call | Denial): decided is Denial => 'constraint' in decided;

const formsOf = ({ path, written }: Call): readonly string[] => (written === path ? [path] : [path, written]);

async function withinItems(principal: Principal, call: Call, reading: ParameterReading): Promise<Call | Denial> {
  for (const path of formsOf(call)) {
    const refused = await itemDenial(principal, path, call.body, reading);
    if (refused !== undefined) return refused;
  }
  return withinPage(principal, call);
}

/**
 * Returns the denial of an equivalent path. In the equivalent paths too, a case-insensitive name is compared case-insensitively; it is at
 * the same place there, or at the end.
 * @param place - place of the case-insensitive name in the path, if any
 */
export function equivalentDenial(
  principal: Principal,
  { sameAs }: GuardedOperation,
  { params, body }: Pick<Call, 'params'> & Partial<Pick<Call, 'body'>>,
  place?: NamePlace,
): Denial | undefined {
  for (const path of sameAs?.(params, body) ?? []) {
    const atEnd = place && { ...place, first: path.split('/').length - place.count };
    const denied =
      pathDenial(principal, path) ??
      (place && nameDenial(principal, path, place)) ??
      (atEnd && nameDenial(principal, path, atEnd));
    if (denied !== undefined) return denied;
  }
  return undefined;
}

/** Returns why the policies refuse one form of the path. */
function formDenial(
  principal: Principal,
  operation: GuardedOperation,
  { verb, body, wrapTtlS = 0 }: Call,
  path: string,
  reading: ParameterReading | undefined,
): Denial | undefined {
  if (operation.sudo === true) {
    const refused = denial(principal, 'sudo', verb === 'LIST' ? `${path}/` : path);
    if (refused !== undefined) return refused;
  }
  const [first, other] = verbCapabilities[verb];
  const refused = denial(principal, operation.capability ?? first, path, body, wrapTtlS, reading);
  if (refused === undefined || other === undefined || operation.capability !== undefined) return refused;
  const alternative = denial(principal, other, path, body, wrapTtlS, reading);
  return alternative?.constraint === `capabilities.${other}` ? refused : alternative; // with `create`, something else is refused
}

/** Returns the rules that grant a call that {@link decide} allows, on each form of its path; none if any valid token may run it. */
export function grantingRules(principal: Principal, operation: GuardedOperation, call: Call): readonly PolicyRule[] {
  if (operation.anyRights === true && !principal.root) return [];
  const wanted = operation.capability === undefined ? verbCapabilities[call.verb] : [operation.capability];
  const rules = formsOf(call).flatMap((path) => grants(principal, path, wanted));
  return rules.filter((rule, at) => rules.findIndex((other) => isSame(rule, other)) === at);
}

const isSame = (one: PolicyRule, other: PolicyRule): boolean => one.policy === other.policy && one.path === other.path;

/** Limits a list to the page size that the caller's policies allow. Returns other calls unchanged, and refuses larger pages. */
function withinPage(principal: Principal, call: Call): Call | Denial {
  if (call.verb !== 'LIST') return call;
  const pages = [call.path, call.written].flatMap((path) => pageAllowed(principal, path) ?? []);
  const [first] = pages;
  if (first === undefined) return call;
  const refused = { constraint: 'pagination_limit', rule: first.rule };
  const max = Math.min(...pages.map((page) => page.max));
  const requested = call.body['limit'] ?? undefined;
  if (requested === undefined && pages.some(({ isRequired }) => isRequired)) return refused;
  if (requested === undefined || requested === 'max') return { ...call, body: withLimit(call.body, max) };
  const limit = typeof requested === 'string' ? integerOf(requested) : requested;
  return typeof limit === 'number' && limit >= 1 && limit <= max ? call : refused;
}

const withLimit = (body: Call['body'], limit: number): Call['body'] => Object.assign(Object.create(null), body, { limit });
