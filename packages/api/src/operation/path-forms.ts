import { capabilitiesOf, type NamePlace, nameDenial, type Principal } from '@transitd/access';
import type { ParamName, Params, Route } from './operation.ts';
import { equivalentDenial } from './rights.ts';

/**
 * Returns the path with each parameter in its canonical form; `path` itself if the route declares no canonical forms.
 * @param segments - segments of `path`
 */
export function canonicalPath({ path: pattern, names }: Route, path: string, segments: readonly string[]): string {
  if (names === undefined) return path;
  const parts = pattern.split('/');
  const form = (text: string, part = ''): string => (isParam(part) ? names[paramIn(part)]?.(text) : undefined) ?? text;
  return (splitAs(parts, segments) ?? segments).map((text, at) => form(text, parts[at])).join('/');
}

/** Returns the place of the parameter that has a canonical form; undefined if no parameter has one. */
export function namePlaceOf({ path: pattern, names }: Route, segments: readonly string[]): NamePlace | undefined {
  if (names === undefined) return undefined;
  const parts = pattern.split('/');
  const at = parts.findIndex((part) => isParam(part) && names[paramIn(part)] !== undefined);
  if (at < 0) return undefined;
  const more = segments.length - parts.length;
  const isAfterSeveral = parts.slice(0, at).some(takesSeveral);
  return { first: isAfterSeveral ? at + more : at, count: takesSeveral(parts[at] ?? '') ? 1 + more : 1 };
}

/** Returns whether a part of a route's path is a parameter: `:name` for one segment, `*name` for one or more. */
export const isParam = (part: string): boolean => part.startsWith(':') || part.startsWith('*');
const paramIn = (part: string): ParamName => part.slice(1) as ParamName;
const takesSeveral = (part: string): boolean => part.startsWith('*') || part === ':mount';

/**
 * Returns the text of each part of a pattern, or undefined if the path does not match. The part that takes several segments gets all that
 * the others leave.
 */
function splitAs(parts: readonly string[], segments: readonly string[]): readonly string[] | undefined {
  const more = segments.length - parts.length;
  const several = parts.findIndex(takesSeveral);
  if (more < 0 || (more > 0 && several < 0)) return undefined;
  const placeOf = (index: number): number => (several >= 0 && index > several ? index + more : index);
  // The literals first: a long path is joined only for the few routes that it matches.
  if (!parts.every((part, index) => isParam(part) || segments[placeOf(index)] === part)) return undefined;
  const textAt = (index: number): string =>
    index === several ? segments.slice(index, index + more + 1).join('/') : (segments[placeOf(index)] ?? '');
  return parts.map((_, index) => textAt(index));
}

/** A route and the parts of its path. */
export interface Pattern {
  readonly route: Route;
  readonly parts: readonly string[];
}

export const patternOf = (route: Route): Pattern => ({ route, parts: route.path.split('/') });

/** Returns the parameters in their canonical form; undefined if the route does not match the path or does not accept its parameters. */
export function paramsOf({ route, parts }: Pattern, segments: readonly string[]): Params | undefined {
  const texts = splitAs(parts, segments);
  if (texts === undefined) return undefined;
  const form = (name: ParamName, text = ''): string => route.names?.[name]?.(text) ?? text;
  const params: Params = Object.fromEntries(
    parts.flatMap((part, at) => (isParam(part) ? [[paramIn(part), form(paramIn(part), texts[at])]] : [])),
  );
  return route.accepts === undefined || route.accepts(params) ? params : undefined;
}

/** Looks up the forms of paths without a request: paths in policies, quotas and capability checks. */
export class PathForms {
  readonly #routes: () => readonly Route[];
  /** Routes whose paths have more than one form; built on first use. */
  #patterns: readonly Pattern[] | undefined;

  constructor(routes: () => readonly Route[]) {
    this.#routes = routes;
  }

  /** Returns the canonical form of `path`, which is used for authorization and quotas. A trailing slash is kept. */
  canonical(path: string): string {
    const found = this.#find(path);
    return found === undefined ? path : canonicalPath(found.route, path, found.segments);
  }

  /**
   * Returns the principal's capabilities on a path. As for a request, they are decided on every form of the path. The result is sorted; it
   * can also be only `root` or only `deny`.
   * @param requested - path below `/v1/`, with a trailing slash for a list; leading slashes are ignored
   */
  capabilities(principal: Principal, requested: string): readonly string[] {
    const path = requested.replace(/^\/+/, '');
    const written = capabilitiesOf(principal, path);
    const [end, bare] = path.endsWith('/') ? ['/', path.slice(0, -1)] : ['', path];
    const found = principal.root ? undefined : this.#find(bare);
    if (found === undefined) return written;
    const { route, segments, params } = found;
    const canonical = canonicalPath(route, bare, segments) + end;
    const place = namePlaceOf(route, segments);
    if (place !== undefined && nameDenial(principal, canonical, place) !== undefined) return ['deny'];
    const both = canonical === path ? written : written.filter((name) => capabilitiesOf(principal, canonical).includes(name));
    const denied = new Set<string>();
    for (const operation of end === '' ? Object.values(route.operations) : [route.operations.LIST]) {
      if (operation?.access !== 'token' || equivalentDenial(principal, operation, { params }, place) === undefined) continue;
      for (const name of operation.capability === 'update' ? ['create', 'update'] : [operation.capability ?? ''])
        denied.add(name);
    }
    const left = both.filter((name) => !denied.has(name));
    return left.length === 0 ? ['deny'] : left;
  }

  #find(path: string): { readonly route: Route; readonly segments: readonly string[]; readonly params: Params } | undefined {
    const segments = path.split('/');
    for (const pattern of this.#table()) {
      const params = paramsOf(pattern, segments);
      if (params !== undefined) return { route: pattern.route, segments, params };
    }
    return undefined;
  }

  #table(): readonly Pattern[] {
    this.#patterns ??= this.#routes().filter(hasForms).map(patternOf);
    return this.#patterns;
  }
}

const hasForms = ({ names, operations }: Route): boolean =>
  names !== undefined ||
  Object.values(operations).some((operation) => operation.access === 'token' && operation.sameAs !== undefined);
