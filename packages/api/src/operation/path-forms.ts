import { capabilitiesOf, isNameDenied, type Principal } from '@transitd/access';
import type { ParamName, Params, Route } from './operation.ts';
import { isDeniedElsewhere } from './rights.ts';

/**
 * Returns the path with each parameter in its canonical form; `path` itself if the route declares no canonical forms.
 * @param segments - segments of `path`; as many as the route has
 */
export function canonicalPath({ path: pattern, names }: Route, path: string, segments: readonly string[]): string {
  if (names === undefined) return path;
  const parts = pattern.split('/');
  const form = (segment: string, part = ''): string =>
    (part.startsWith(':') ? names[part.slice(1) as ParamName]?.(segment) : undefined) ?? segment;
  return segments.map((segment, at) => form(segment, parts[at])).join('/');
}

/** Returns the index of the segment that has a canonical form; undefined if no segment has one. */
export function nameAtOf({ path, names }: Route): number | undefined {
  if (names === undefined) return undefined;
  const at = path.split('/').findIndex((part) => part.startsWith(':') && names[part.slice(1) as ParamName] !== undefined);
  return at < 0 ? undefined : at;
}

/** Returns the parameters in their canonical form. */
export function canonicalParams({ names }: Route, params: Params): Params {
  if (names === undefined) return params;
  return Object.fromEntries(
    Object.entries(params).map(([name, written]) => [name, names[name as ParamName]?.(written) ?? written]),
  );
}

/** Looks up the forms of paths without a request: paths in policies, quotas and capability checks. */
export class PathForms {
  readonly #routes: () => readonly Route[];
  /** Routes whose paths have more than one form; built on first use. */
  #placed: readonly Placed[] | undefined;

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
   * @param requested - path below `/v1/`; leading slashes are ignored
   */
  capabilities(principal: Principal, requested: string): readonly string[] {
    const path = requested.replace(/^\/+/, '');
    const written = capabilitiesOf(principal, path);
    const found = principal.root ? undefined : this.#find(path);
    if (found === undefined) return written;
    const { route, segments, params } = found;
    const canonical = canonicalPath(route, path, segments);
    const nameAt = nameAtOf(route);
    if (nameAt !== undefined && isNameDenied(principal, canonical, nameAt)) return ['deny'];
    const both = canonical === path ? written : written.filter((name) => capabilitiesOf(principal, canonical).includes(name));
    const denied = new Set<string>();
    for (const operation of Object.values(route.operations)) {
      if (operation.access !== 'token' || !isDeniedElsewhere(principal, operation, { params }, nameAt)) continue;
      for (const name of operation.capability === 'update' ? ['create', 'update'] : [operation.capability ?? ''])
        denied.add(name);
    }
    const left = both.filter((name) => !denied.has(name));
    return left.length === 0 ? ['deny'] : left;
  }

  #find(path: string): { readonly route: Route; readonly segments: readonly string[]; readonly params: Params } | undefined {
    const written = path.split('/');
    for (const { route, parts } of this.#table()) {
      const segments = asSegments(written, parts);
      if (segments === undefined || !parts.every((part, at) => part.startsWith(':') || part === segments[at])) continue;
      const inPath = parts.flatMap((part, at) => (part.startsWith(':') ? [[part.slice(1), segments[at] ?? '']] : []));
      const params = canonicalParams(route, Object.fromEntries(inPath));
      if (route.accepts === undefined || route.accepts(params)) return { route, segments, params };
    }
    return undefined;
  }

  #table(): readonly Placed[] {
    this.#placed ??= this.#routes()
      .filter(hasForms)
      .map((route) => ({ route, parts: route.path.split('/') }));
    return this.#placed;
  }
}

interface Placed {
  readonly route: Route;
  readonly parts: readonly string[];
}

/** Splits a path into the segments of a route; a `:mount` parameter takes all leading segments. */
function asSegments(written: readonly string[], parts: readonly string[]): readonly string[] | undefined {
  const more = written.length - parts.length;
  if (more === 0) return written;
  if (more < 0 || parts[0] !== ':mount') return undefined;
  return [written.slice(0, more + 1).join('/'), ...written.slice(more + 1)];
}

const hasForms = ({ names, operations }: Route): boolean =>
  names !== undefined ||
  Object.values(operations).some((operation) => operation.access === 'token' && operation.sameAs !== undefined);
