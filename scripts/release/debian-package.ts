// The Debian package: the archive below /usr/lib/transitd, a systemd unit, a user, a configuration to edit, and rotation of audit files.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Platform } from './node-binary.ts';
import { commitSeconds, gzipLevel, root, version } from './project.ts';

/** Debian orders `0.1.0~rc.1` before `0.1.0`, as npm orders `0.1.0-rc.1`. */
const debianVersion = version.replace('-', '~');

/** Debian's names of the platforms. */
const architectures: Readonly<Record<Platform, string>> = { 'linux-x64': 'amd64', 'linux-arm64': 'arm64' };

/** Name of the package for a platform. */
export const debianName = (platform: Platform): string => `transitd_${debianVersion}_${architectures[platform]}.deb`;

const configuration = '/etc/transitd/transitd.yaml';

/** File of the package → file of the repository. */
const files: Readonly<Record<string, string>> = {
  [configuration]: 'deploy/transitd.example.yaml',
  '/etc/logrotate.d/transitd': 'deploy/debian/logrotate',
  '/usr/lib/systemd/system/transitd.service': 'deploy/systemd/transitd.service',
};

const control = (platform: Platform): string => `Package: transitd
Version: ${debianVersion}
Architecture: ${architectures[platform]}
Maintainer: The transitd maintainers <transitd@localhost>
Section: net
Priority: optional
Depends: libc6 (>= 2.34), libstdc++6 (>= 11), passwd
Recommends: logrotate
Description: clustered transit cryptography service
 Stores named keys and encrypts, decrypts, signs and verifies with them for
 callers that never see the keys. Its HTTP API is that of the transit engine
 of Vault and OpenBao. Nodes replicate by Raft. Node.js is included.
`;

/**
 * Builds the package of a platform.
 * @param archive - folder with the content of the platform's archive; it is moved into the package
 * @param stage - where the package's files are put together; must not exist
 */
export function buildDebianPackage(
  platform: Platform,
  { archive, stage, out }: { readonly archive: string; readonly stage: string; readonly out: string },
): void {
  const put = (from: string, to: string): void => {
    mkdirSync(dirname(join(stage, to)), { recursive: true });
    cpSync(join(root, from), join(stage, to));
  };
  for (const [to, from] of Object.entries(files)) put(from, to);
  for (const script of ['postinst', 'prerm', 'postrm']) {
    put(`deploy/debian/${script}`, `DEBIAN/${script}`);
    chmodSync(join(stage, 'DEBIAN', script), 0o755);
  }
  writeFileSync(join(stage, 'DEBIAN/control'), control(platform));
  writeFileSync(join(stage, 'DEBIAN/conffiles'), `${configuration}\n/etc/logrotate.d/transitd\n`);
  renameSync(archive, join(stage, 'usr/lib/transitd'));
  mkdirSync(join(stage, 'usr/bin'));
  symlinkSync('../lib/transitd/bin/transitd', join(stage, 'usr/bin/transitd'));
  mkdirSync(join(stage, 'usr/share/doc/transitd'), { recursive: true });
  cpSync(join(stage, 'usr/lib/transitd/THIRD-PARTY-NOTICES.txt'), join(stage, 'usr/share/doc/transitd/copyright'));
  execFileSync('chmod', ['-R', 'a+rX,u+w,go-w', stage]);
  // gzip, which every dpkg reads. dpkg-deb sorts the names, and sets newer times to this one.
  const compressed = ['-Z', 'gzip', '-z', gzipLevel()];
  execFileSync('dpkg-deb', ['--root-owner-group', ...compressed, '--build', stage, join(out, debianName(platform))], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(commitSeconds()) },
    stdio: ['ignore', 'ignore', 2],
  });
}
