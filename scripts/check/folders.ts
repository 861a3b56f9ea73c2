// Finds the imports between the folders of a package, and compares them with the table of arrows in folder-arrows.ts.
import { dirname, join, relative } from 'node:path/posix';
import { importsOf } from './module.ts';
import type { Finding, SourceFile } from './source-files.ts';

/**
 * One row for each folder below `src` (`.` is `src` itself) with the folders that it may import. The most basic folder comes first. A row
 * may name only folders of earlier rows, so a table cannot contain a cycle. The row `auth/*` is that of each folder in `auth` without a row
 * of its own; these folders may not import each other.
 */
export type FolderTable = Readonly<Record<string, readonly string[]>>;
/** A table per package. */
export type FolderArrows = Readonly<Record<string, FolderTable>>;

/** An import that crosses from one folder of a package into another. */
export interface Arrow {
  readonly package: string;
  readonly from: string;
  readonly to: string;
  readonly file: string;
  readonly line: number;
}

const source = /^packages\/([^/]+)\/src\/(.+\.ts)$/;

/**
 * Returns the entries of a package: the files that `exports` in its package.json names, relative to `src`. An entry is the interface to
 * other packages, so it may import every folder of its package, and no folder may import it.
 */
function entriesOf(files: readonly SourceFile[], name: string): Set<string> {
  const manifest = files.find(({ path }) => path === `packages/${name}/package.json`)?.text ?? '';
  return new Set(['index.ts', ...[...manifest.matchAll(/"\.\/src\/([^"]+\.ts)"/g)].map(([, file = '']) => file)]);
}

/** Returns the folders of each package, sorted. */
export function foldersOf(files: readonly SourceFile[]): Map<string, string[]> {
  const folders = new Map<string, Set<string>>();
  for (const { path } of files) {
    const [, name, file] = source.exec(path) ?? [];
    if (name === undefined || file === undefined) continue;
    const known = folders.get(name) ?? new Set();
    folders.set(name, file === 'index.ts' ? known : known.add(dirname(file)));
  }
  return new Map([...folders].sort().map(([name, known]) => [name, [...known].sort()]));
}

/** Returns each import between two folders of a package, except the imports of its entries. */
export function arrowsOf(files: readonly SourceFile[]): Arrow[] {
  const entries = new Map([...foldersOf(files).keys()].map((name) => [name, entriesOf(files, name)]));
  return files.flatMap((whole) => {
    const { path } = whole;
    const [, name, file] = source.exec(path) ?? [];
    if (name === undefined || file === undefined || entries.get(name)?.has(file)) return [];
    const root = `packages/${name}/src`;
    const from = dirname(file);
    return importsOf(whole)
      .filter(({ specifier }) => specifier.startsWith('.'))
      .map(({ specifier, line }) => ({ line, target: relative(root, join(dirname(path), specifier)) }))
      .map(({ line, target }) => ({ line, to: entries.get(name)?.has(target) ? target : dirname(target) }))
      .filter(({ to }) => to !== from && !to.startsWith('..'))
      .map(({ line, to }) => ({ package: name, from, to, file: path, line }));
  });
}

/** Returns the cycles between folders of a package, one finding per group of folders that reach each other. */
export function cycleFindings(files: readonly SourceFile[]): Finding[] {
  const arrows = arrowsOf(files);
  return [...foldersOf(files).keys()].flatMap((name) => {
    const own = arrows.filter((arrow) => arrow.package === name);
    return groupsOf(own).map((group) => ({
      rule: 'cycle',
      path: `packages/${name}/src`,
      line: 0,
      message: `folders import each other: ${group.join(', ')} (${own
        .filter(({ from, to }) => group.includes(from) && group.includes(to))
        .map(({ from, to, file, line }) => `${from} → ${to} at ${relative(`packages/${name}/src`, file)}:${line}`)
        .slice(0, 12)
        .join('; ')})`,
    }));
  });
}

/** Returns the files of packages that import each other, type imports included; one finding per group. */
export function fileCycleFindings(files: readonly SourceFile[]): Finding[] {
  const imports = files
    .filter(({ path }) => source.test(path))
    .flatMap((file) =>
      importsOf(file)
        .filter(({ specifier }) => specifier.startsWith('.'))
        .map(({ specifier }) => ({ from: file.path, to: join(dirname(file.path), specifier) })),
    );
  return groupsOf(imports).map((group) => ({
    rule: 'cycle',
    path: group[0] ?? '',
    line: 0,
    message: `files import each other: ${group.join(', ')}`,
  }));
}

/** Returns the groups of places in which every place reaches all others through imports, itself included. */
function groupsOf(arrows: readonly Pick<Arrow, 'from' | 'to'>[]): string[][] {
  const next = new Map<string, Set<string>>();
  for (const { from, to } of arrows) next.set(from, (next.get(from) ?? new Set()).add(to));
  const reach = (start: string): Set<string> => {
    const seen = new Set<string>();
    const queue = [start];
    for (let folder = queue.pop(); folder !== undefined; folder = queue.pop()) {
      const fresh = [...(next.get(folder) ?? [])].filter((to) => !seen.has(to));
      for (const to of fresh) seen.add(to);
      queue.push(...fresh);
    }
    return seen;
  };
  const reached = new Map([...next.keys()].map((folder) => [folder, reach(folder)]));
  const groups = new Map<string, string[]>();
  for (const [folder, seen] of reached) {
    if (!seen.has(folder)) continue;
    const group = [...seen].filter((other) => reached.get(other)?.has(folder)).sort();
    groups.set(group.join(), group);
  }
  return [...groups.values()];
}

/** Returns the row of a folder. */
const rowOf = (rows: FolderTable, folder: string): string => (Object.hasOwn(rows, folder) ? folder : `${dirname(folder)}/*`);

/** Returns the packages and folders without a row, rows without a folder, rows in the wrong order, and imports that no row allows. */
export function arrowFindings(files: readonly SourceFile[], table: FolderArrows): Finding[] {
  const folders = foldersOf(files);
  const finding = (path: string, line: number, message: string): Finding => ({ rule: 'arrow', path, line, message });
  const of = (name: string): string => `packages/${name}/src`;
  const stale = Object.keys(table).filter((name) => !folders.has(name));
  return [
    ...stale.map((name) => finding(of(name), 0, 'the table of folder arrows has a row for this package, which does not exist')),
    ...[...folders].flatMap(([name, known]) => {
      const rows = table[name];
      if (rows === undefined) return [finding(of(name), 0, 'the table of folder arrows has no row for this package')];
      const order = Object.keys(rows);
      return [
        ...known
          .filter((folder) => !order.includes(rowOf(rows, folder)))
          .map((folder) => finding(of(name), 0, `folder ${folder} has no row`)),
        ...order
          .filter((row) => !known.some((folder) => rowOf(rows, folder) === row))
          .map((row) => finding(of(name), 0, `row ${row} has no folder`)),
        ...order.flatMap((folder, index) =>
          (rows[folder] ?? [])
            .filter((to) => !order.slice(0, index).includes(to))
            .map((to) => finding(of(name), 0, `row ${folder} names ${to}, which is not in a row above it`)),
        ),
      ];
    }),
    ...arrowsOf(files)
      .filter(({ package: name, from, to }) => {
        const rows = table[name] ?? {};
        return rows[rowOf(rows, from)]?.includes(rowOf(rows, to)) === false;
      })
      .map(({ from, to, file, line }) => finding(file, line, `${from} may not import ${to}`)),
  ];
}

/**
 * Returns the observed arrows as rows that can be pasted into the table, the most basic folder first. In a cycle, the folder that imports
 * least from the remaining folders comes first. Its imports from them are left out of the row and listed in a comment.
 */
export function observedTable(files: readonly SourceFile[], name: string): string {
  const own = arrowsOf(files).filter((arrow) => arrow.package === name);
  const rest = new Set(foldersOf(files).get(name) ?? []);
  const upward = (folder: string): Arrow[] =>
    own.filter(({ from, to }) => from === folder && (rest.has(to) || to.endsWith('.ts')));
  const lines: string[] = [];
  while (rest.size > 0) {
    const folder = [...rest].sort((a, b) => upward(a).length - upward(b).length || a.localeCompare(b))[0] ?? '';
    rest.delete(folder);
    const wrong = upward(folder);
    const targets = [...new Set(own.filter(({ from }) => from === folder).map(({ to }) => to))].sort();
    const row = targets.filter((to) => !wrong.some((arrow) => arrow.to === to));
    for (const to of new Set(wrong.map((arrow) => arrow.to))) {
      const places = wrong
        .filter((arrow) => arrow.to === to)
        .map(({ file, line }) => `${relative(`packages/${name}/src`, file)}:${line}`);
      lines.push(
        `    // upward: ${folder} → ${to}, ${places.length} imports: ${places.slice(0, 3).join(', ')}${places.length > 3 ? ' …' : ''}`,
      );
    }
    lines.push(`    ${quoted(folder)}: [${row.map((to) => `'${to}'`).join(', ')}],`);
  }
  return [`  ${quoted(name)}: {`, ...lines, '  },'].join('\n');
}

const quoted = (name: string): string => (/^\w+$/.test(name) ? name : `'${name}'`);
