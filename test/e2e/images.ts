// Builds every image of the container tests from this machine's files, without a registry. The Dockerfile builds the image under test;
// its base and the images of HAProxy and Prometheus replace the public ones.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { folderName, packFolder, stageArchive } from '../../scripts/release/archive.ts';
import type { Platform } from '../../scripts/release/node-binary.ts';
import { compile } from '../../scripts/release/workspace.ts';

const root = join(import.meta.dirname, '../..');

export interface Images {
  readonly transitd: string;
  readonly haproxy: string;
  readonly prometheus: string;
}

let made: Images | undefined;

/** The image is built once for each test run. */
export function images(): Images {
  made ??= {
    transitd: transitd(),
    haproxy: standIn({
      name: 'transitd-e2e-haproxy',
      programs: { '/usr/local/sbin/haproxy': '/usr/sbin/haproxy' },
      changes: ['CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]'],
    }),
    prometheus: standIn({
      name: 'transitd-e2e-prometheus',
      programs: { '/bin/prometheus': '/usr/bin/prometheus' },
      files: ['/usr/share/prometheus/web'],
      changes: ['ENTRYPOINT ["/bin/prometheus"]'],
    }),
  };
  return made;
}

/** Returns the image under test. */
function transitd(): string {
  const base = standIn({
    name: 'transitd-e2e-base',
    programs: {
      '/usr/local/bin/node': join(root, 'node_modules/node/bin/node'),
      '/bin/sh': '/bin/sh',
      '/usr/bin/cat': '/usr/bin/cat',
      '/usr/bin/chmod': '/usr/bin/chmod',
      '/usr/bin/install': '/usr/bin/install',
      '/usr/bin/true': '/usr/bin/true',
    },
    changes: ['CMD ["node"]'],
  });
  const context = mkdtempSync(join(tmpdir(), 'transitd-context-'));
  try {
    for (const path of buildContext()) cpSync(join(root, path), join(context, path), { recursive: true, verbatimSymlinks: true });
    writeFileSync(join(context, '.dockerignore'), `${readFileSync(join(root, '.dockerignore'), 'utf8')}!node_modules\n`);
    const args = ['--build-arg', `BASE=${base}`, '--build-arg', 'INSTALL=true', '--file', join(root, 'Dockerfile')];
    docker('build', '--quiet', '--tag', 'transitd-e2e', ...args, context);
  } finally {
    rmSync(context, { recursive: true });
  }
  return 'transitd-e2e';
}

/** Builds the image of a release from an archive that is made for it, and returns its name. */
export function releaseImage(): string {
  const platform = `${process.platform}-${process.arch}` as Platform;
  const tools = ['/bin/sh', '/usr/bin/chmod', '/usr/bin/dirname', '/usr/bin/install', '/usr/bin/mv', '/usr/bin/readlink'];
  const base = standIn({
    name: 'transitd-e2e-release-base',
    programs: Object.fromEntries(tools.map((path) => [path, path])),
    files: librariesOf(join(root, 'node_modules/node/bin/node')),
    changes: ['CMD ["sh"]'],
  });
  const context = mkdtempSync(join(tmpdir(), 'transitd-context-'));
  try {
    const archive = `${folderName(platform)}.tar.gz`;
    compile();
    stageArchive(platform, join(context, folderName(platform)));
    packFolder(join(context, folderName(platform)), join(context, archive));
    const args = [
      '--build-arg',
      `BASE=${base}`,
      '--build-arg',
      `ARCHIVE=${archive}`,
      '--file',
      join(root, 'deploy/image/Dockerfile'),
    ];
    rmSync(join(context, folderName(platform)), { recursive: true });
    docker('build', '--quiet', '--tag', 'transitd-e2e-release', ...args, context);
  } finally {
    rmSync(context, { recursive: true });
  }
  return 'transitd-e2e-release';
}

/** The build context: the sources that .dockerignore does not exclude, and the production packages of the lock file. */
function buildContext(): string[] {
  const lock: { packages: Record<string, { dev?: true }> } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const installed = Object.entries(lock.packages).filter(([path, { dev }]) => path.startsWith('node_modules/') && dev !== true);
  const paths = ['.npmrc', 'package.json', 'package-lock.json', 'packages', ...installed.map(([path]) => path)];
  return paths.filter((path) => existsSync(join(root, path))); // packages for other platforms are not installed
}

interface StandIn {
  readonly name: string;
  /** Path in the image → path here. Linked libraries are added. */
  readonly programs: Readonly<Record<string, string>>;
  /** Files and folders that have the same path in the image. */
  readonly files?: readonly string[];
  readonly changes: readonly string[];
}

/** Builds an image that has only these programs and their libraries. */
function standIn({ name, programs, files = [], changes }: StandIn): string {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-image-'));
  try {
    const libraries = Object.values(programs).flatMap(librariesOf);
    const copies = new Map([...Object.entries(programs), ...[...libraries, ...files].map((path) => [path, path] as const)]);
    for (const [to, from] of copies) {
      mkdirSync(join(folder, dirname(to)), { recursive: true });
      cpSync(realpathSync(from), join(folder, to), { recursive: true, dereference: true });
    }
    mkdirSync(join(folder, 'tmp'), { recursive: true, mode: 0o777 });
    const archive = `${folder}/${basename(folder)}.tar`;
    execFileSync('tar', ['-C', folder, '--exclude', `./${basename(archive)}`, '-cf', archive, '.']);
    docker('import', ...changes.flatMap((change) => ['--change', change]), archive, name);
  } finally {
    rmSync(folder, { recursive: true });
  }
  return name;
}

/** Returns the libraries that the dynamic linker would load, and the linker itself. */
function librariesOf(program: string): string[] {
  const listed = execFileSync('ldd', [program], { encoding: 'utf8' });
  return [...listed.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path);
}

const docker = (...args: string[]): void => {
  execFileSync('docker', args, { stdio: ['ignore', 'ignore', 'pipe'] });
};
