import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** The user that runs the node. Root may read everything, so its own rights say nothing about those of the service. */
export interface ServiceUser {
  readonly name: string;
  readonly uid: number;
  readonly gids: readonly number[];
  /** Whether this is the user that runs the doctor. */
  readonly isOwn: boolean;
}

/** Folders of systemd units, in order of precedence. */
const unitFolders = [
  '/etc/systemd/system',
  '/run/systemd/system',
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/lib/systemd/system',
];

/**
 * Returns the user that runs the node with this configuration file. For root that is the user of the installed unit that names the file,
 * otherwise the owner of the data directory.
 */
export function serviceUser(
  file: string,
  dataDir: string,
  { isRoot = process.geteuid?.() === 0, folders = unitFolders } = {},
): ServiceUser {
  const own = { name: 'this user', uid: process.geteuid?.() ?? 0, gids: ownGroups(), isOwn: true };
  if (!isRoot) return own;
  const settings = unitSettings(folders);
  const isOfUnit = valuesOf(settings, 'ExecStart').some((command) => command.split(/[ =]/).includes(resolve(file)));
  const named = isOfUnit ? valuesOf(settings, 'User').at(-1) : undefined;
  const found = named === undefined ? undefined : userNamed(named);
  const ofUnit = found && { ...found, gids: groupsInUnit(settings, found) };
  const owner = statSync(dataDir, { throwIfNoEntry: false });
  const user = ofUnit ?? (owner && (userNamed(String(owner.uid)) ?? ofOwner(owner)));
  return user === undefined || user.uid === own.uid ? own : user;
}

type Setting = readonly [name: string, value: string];

/** Returns the assignments in the installed unit and its drop-ins, in the order in which systemd reads them. */
function unitSettings(folders: readonly string[]): readonly Setting[] {
  const unit = folders.map((folder) => join(folder, 'transitd.service')).find((path) => existsSync(path));
  if (unit === undefined) return [];
  const dropIns = new Map<string, string>();
  for (const folder of folders.map((one) => join(one, 'transitd.service.d')))
    for (const name of existsSync(folder) ? readdirSync(folder) : [])
      if (name.endsWith('.conf') && !dropIns.has(name)) dropIns.set(name, join(folder, name));
  const files = [unit, ...[...dropIns].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path)];
  return files.flatMap((path) =>
    readFileSync(path, 'utf8')
      .replaceAll('\\\n', ' ')
      .split('\n')
      .flatMap((line): readonly Setting[] => {
        const [, name, value] = /^\s*(\w+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
        return name === undefined || value === undefined ? [] : [[name, value]];
      }),
  );
}

/** Returns the values of a setting. An empty value removes the earlier ones. */
function valuesOf(settings: readonly Setting[], name: string): readonly string[] {
  const values = settings.flatMap(([one, value]) => (one === name ? [value] : []));
  return values.slice(values.lastIndexOf('') + 1);
}

/** Returns the groups of the service: `Group` replaces the user's own group, and `SupplementaryGroups` are added. */
function groupsInUnit(settings: readonly Setting[], { gids: [own, ...others] }: ServiceUser): readonly number[] {
  const group = valuesOf(settings, 'Group').at(-1);
  const main = group === undefined ? own : groupNamed(group);
  const added = valuesOf(settings, 'SupplementaryGroups').flatMap((names) => names.split(/\s+/).map(groupNamed));
  return [main, ...others, ...added].filter((gid) => gid !== undefined);
}

/** Asks the system for a group, by name or id; undefined if it does not know that group. */
function groupNamed(group: string): number | undefined {
  if (/^\d+$/.test(group)) return Number(group);
  try {
    const entry = execFileSync('getent', ['group', '--', group], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return Number(entry.split(':')[2]);
  } catch {
    return undefined;
  }
}

const ownGroups = (): readonly number[] => [process.getegid?.() ?? 0, ...(process.getgroups?.() ?? [])];

const ofOwner = ({ uid, gid }: { readonly uid: number; readonly gid: number }): ServiceUser => ({
  ...{ name: `user id ${uid}`, uid, gids: [gid], isOwn: false },
});

/** Asks the system for a user, by name or id; undefined if it does not know that user. */
function userNamed(user: string): ServiceUser | undefined {
  const id = (...options: readonly string[]): string =>
    execFileSync('id', [...options, '--', user], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    // The first group is the user's own.
    return { name: id('-un'), uid: Number(id('-u')), gids: id('-G').split(' ').map(Number), isOwn: false };
  } catch {
    return undefined;
  }
}

/** Returns why the user cannot read or write an existing path; undefined if the user can. */
export function denial(path: string, access: 'read' | 'write', user: ServiceUser): string | undefined {
  if (user.isOwn) return isOpenHere(path, access) ? undefined : `${path} cannot be ${access === 'read' ? 'read' : 'written'}`;
  for (let folder = dirname(resolve(path)); ; folder = dirname(folder)) {
    if (!permits(folder, 1, user)) return `${user.name} cannot enter ${folder}`;
    if (folder === dirname(folder)) break;
  }
  return permits(path, access === 'read' ? 4 : 2, user) ? undefined : `${user.name} cannot ${access} ${path}`;
}

function isOpenHere(path: string, access: 'read' | 'write'): boolean {
  try {
    accessSync(path, access === 'read' ? constants.R_OK : constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** @param bit - of the three bits of a class: 4 to read, 2 to write, 1 to enter */
function permits(path: string, bit: number, { uid, gids }: ServiceUser): boolean {
  const { uid: owner, gid, mode } = statSync(path);
  const shift = uid === owner ? 6 : gids.includes(gid) ? 3 : 0;
  return uid === 0 || ((mode >> shift) & bit) !== 0;
}

/** Returns why a secret is exposed to other users than root, the owner and the service; undefined if it is not. */
export function exposure(path: string, { gids }: ServiceUser): string | undefined {
  const { gid, mode } = statSync(path);
  const excess = mode & (gids.includes(gid) ? 0o027 : 0o077);
  return excess === 0 ? undefined : `it has mode ${(mode & 0o777).toString(8).padStart(4, '0')}: other users can access it`;
}
