// The self-contained archive of a platform: Node.js, the program and its third-party packages. It needs no npm and no compiler.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { productionPackages } from './lock-file.ts';
import { nodeFor, type Platform } from './node-binary.ts';
import { notices } from './notices.ts';
import { stageServer } from './npm-packages.ts';
import { commitSeconds, gzipLevel, root, version } from './project.ts';

/** Name of the archive's only folder. */
export const folderName = (platform: Platform): string => `transitd-${version}-${platform}`;

const isHost = (platform: Platform): boolean => platform === `${process.platform}-${process.arch}`;

/** The native part of pkcs11js, which `npm run build:pkcs11` compiles for this machine. */
const binding = 'build/Release/pkcs11.node';

export const hasPkcs11 = (platform: Platform): boolean =>
  isHost(platform) && existsSync(join(root, 'node_modules/pkcs11js', binding));

/** Writes the content of an archive into `to`. */
export function stageArchive(platform: Platform, to: string): void {
  stageServer(join(to, 'lib/transitd'));
  for (const { path, name } of productionPackages()) {
    if (name === 'pkcs11js' && !hasPkcs11(platform)) continue;
    const from = join(root, path);
    cpSync(from, join(to, 'lib/transitd', path), {
      recursive: true,
      filter: (file) => isNeeded(file.slice(from.length + 1), { name, platform }),
    });
  }
  const node = nodeFor(platform);
  mkdirSync(join(to, 'lib/node/bin'), { recursive: true });
  cpSync(join(node, 'bin/node'), join(to, 'lib/node/bin/node'));
  cpSync(join(node, 'LICENSE'), join(to, 'lib/node/LICENSE'));
  mkdirSync(join(to, 'bin'));
  cpSync(join(root, 'scripts/release/transitd.sh'), join(to, 'bin/transitd'));
  chmodSync(join(to, 'bin/transitd'), 0o755);
  cpSync(join(root, 'LICENSE'), join(to, 'LICENSE'));
  cpSync(join(root, 'scripts/release/archive-readme.md'), join(to, 'README.md'));
  writeFileSync(join(to, 'THIRD-PARTY-NOTICES.txt'), notices());
  cpSync(join(root, 'deploy/transitd.example.yaml'), join(to, 'transitd.example.yaml'));
}

/**
 * Whether a node of this platform uses a file of a third-party package. Nested packages have entries of their own. In the SDK of
 * AWS, `dist-es` is for bundlers.
 */
function isNeeded(path: string, { name, platform }: { readonly name: string; readonly platform: Platform }): boolean {
  if (/(^|\/)(node_modules|dist-es|dist-types)$/.test(path) || /\.(map|ts|mts|cts|o|d|gyp|c|cc|cpp|h|bare)$/.test(path))
    return false;
  const [, prebuild] = /^prebuilds\/([^/]+)/.exec(path) ?? [];
  if (prebuild !== undefined && prebuild !== platform) return false;
  return name !== 'pkcs11js' || !path.startsWith('build/') || binding.startsWith(path) || path === binding;
}

/** Packs a folder, so that equal content makes equal bytes: sorted names, one time, one owner, modes without the umask. */
export function packFolder(folder: string, archive: string): void {
  const equal = ['--sort=name', '--format=gnu', '--owner=0', '--group=0', '--numeric-owner', '--mode=a+rX,u+w,go-w'];
  const args = [...equal, `--mtime=@${commitSeconds()}`, `--use-compress-program=gzip -n -${gzipLevel()}`, '-cf', archive];
  execFileSync('tar', [...args, '-C', dirname(folder), basename(folder)]);
}
