import { comparePaths } from './path.ts';
import type { PendingRow } from './range.ts';
import type { PathPage } from './store.ts';

/** Returns a page of stored paths with the pending writes that it covers; both ascend. */
export function withPending({ paths, next }: PathPage, pending: readonly PendingRow[]): PathPage {
  const covered = next === undefined ? pending : pending.filter(({ path }) => comparePaths(path, next) <= 0);
  if (covered.length === 0) return next === undefined ? { paths } : { paths, next };
  const written = new Set(covered.map(({ path }) => path));
  const present = covered.filter(({ value }) => value !== null).map(({ path }) => path);
  const all = [...paths.filter((path) => !written.has(path)), ...present].sort(comparePaths);
  return next === undefined ? { paths: all } : { paths: all, next };
}

/** Merges pages of several sources, which share no path, into one of at most `limit` paths. */
export function mergePathPages(pages: readonly PathPage[], limit: number): PathPage {
  const ends = pages.flatMap(({ next }) => next ?? []).sort(comparePaths);
  const [end] = ends;
  const all = pages.length === 1 && pages[0] ? pages[0].paths : pages.flatMap(({ paths }) => paths).sort(comparePaths);
  const paths = end === undefined ? all : all.filter((path) => comparePaths(path, end) <= 0);
  if (paths.length > limit) return { paths: paths.slice(0, limit), next: paths[limit - 1] ?? '' };
  return end === undefined ? { paths } : { paths, next: end };
}
