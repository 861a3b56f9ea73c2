// Reads the Debian packages of all platforms. Installs, removes and purges the one of this machine with dpkg, in a copy of the file system
// that is thrown away afterwards.
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { folderName } from '../../scripts/release/archive.ts';
import { debianName } from '../../scripts/release/debian-package.ts';
import { type Platform, platforms } from '../../scripts/release/node-binary.ts';
import { root } from '../../scripts/release/project.ts';
import { artifact, Folders, machinePath, shellLines } from './artifacts.ts';
import { DevNode } from './dev-node.ts';

const folders = new Folders();
const output = (program: string, ...args: string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 26 });

/** Debian's name of a platform, and the machine in the header of its programs (ELF, `e_machine`). */
const expected: Readonly<Record<Platform, { readonly architecture: string; readonly machine: number }>> = {
  'linux-x64': { architecture: 'amd64', machine: 62 },
  'linux-arm64': { architecture: 'arm64', machine: 183 },
};
const platform = `${process.platform}-${process.arch}` as Platform;

/** Returns the machine of a program or library; undefined for a file of another kind. */
function machineOf(file: string): number | undefined {
  const header = Buffer.alloc(20);
  const opened = openSync(file, 'r');
  try {
    readSync(opened, header);
  } finally {
    closeSync(opened);
  }
  return header.subarray(0, 4).toString('latin1') === '\u007fELF' ? header.readUInt16LE(18) : undefined;
}

const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));

after(() => folders.clean());

for (const each of platforms)
  describe(`the Debian package for ${each}`, () => {
    const { architecture, machine } = expected[each];
    let folder: string;
    before(() => {
      folder = folders.empty();
      output('dpkg-deb', '--raw-extract', artifact(debianName(each)), folder);
    });

    it(`is for ${architecture}, and has the dependencies and scripts of the others`, () => {
      const field = (name: string): string => output('dpkg-deb', '--field', artifact(debianName(each)), name).trim();
      expect([field('Package'), field('Architecture')]).to.deep.equal(['transitd', architecture]);
      expect(field('Depends')).to.equal('libc6 (>= 2.34), libstdc++6 (>= 11), passwd');
      for (const script of ['postinst', 'prerm', 'postrm'])
        expect(readFileSync(join(folder, 'DEBIAN', script), 'utf8')).to.equal(
          readFileSync(join(root, 'deploy/debian', script), 'utf8'),
        );
      expect(readFileSync(join(folder, 'DEBIAN/conffiles'), 'utf8')).to.equal(
        '/etc/transitd/transitd.yaml\n/etc/logrotate.d/transitd\n',
      );
    });

    it('contains the files of the archive, unchanged, and programs for no other machine', () => {
      const unpacked = folders.empty();
      output('tar', '-C', unpacked, '-xf', artifact(`${folderName(each)}.tar.gz`));
      output('diff', '-r', '--no-dereference', join(unpacked, folderName(each)), join(folder, 'usr/lib/transitd'));
      const machines = filesBelow(join(folder, 'usr')).flatMap((file) => machineOf(file) ?? []);
      expect(machines).to.have.length.above(2); // Node.js, LevelDB, libsodium
      expect([...new Set(machines)]).to.deep.equal([machine]);
    });

    it('belongs to root, and only root may change it', () => {
      const lines = output('dpkg-deb', '--contents', artifact(debianName(each)))
        .trimEnd()
        .split('\n');
      expect(lines.filter((line) => !/^(?:l|[d-]rw[x-]r-[x-]r-[x-]) ?.*root\/root /.test(line))).to.deep.equal([]);
      for (const path of ['./usr/lib/systemd/system/transitd.service', './usr/bin/transitd -> ../lib/transitd/bin/transitd'])
        expect(lines.some((line) => line.endsWith(path))).to.equal(true);
    });
  });

describe('the Debian package of this machine', () => {
  let machine: string;
  let mounted = false;
  /** The environment of an administrator: that of the tests may name another folder for compiled sources. */
  const env = { PATH: machinePath, HOME: '/root' };
  const inside = (...command: string[]): string =>
    execFileSync('chroot', [machine, ...command], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], env });
  const modeOf = (path: string): string => inside('stat', '-c', '%a %U:%G', path).trim();

  before(() => {
    if (process.getuid?.() !== 0) throw new Error('this test needs root: it installs the package in a copy of the file system');
    // A file system of its own: an overlay cannot be stacked on the folders of another overlay.
    const place = folders.empty();
    output('mount', '-t', 'tmpfs', 'tmpfs', place);
    mounted = true;
    const [upper, work] = ['upper', 'work'].map((name) => join(place, name)) as [string, string];
    machine = join(place, 'machine');
    for (const folder of [upper, work, machine]) mkdirSync(folder);
    output('mount', '-t', 'overlay', 'overlay', '-o', `lowerdir=/,upperdir=${upper},workdir=${work}`, machine);
    output('mount', '-t', 'proc', 'proc', join(machine, 'proc'));
    output('mount', '--bind', '/dev', join(machine, 'dev'));
    output('mount', '-t', 'tmpfs', 'tmpfs', join(machine, 'tmp'));
    execFileSync('cp', [artifact(debianName(platform)), join(machine, 'tmp')]);
  });

  after(() => {
    if (mounted) {
      for (const folder of ['tmp', 'dev', 'proc', '']) spawnSync('umount', ['-l', join(machine, folder)]);
      spawnSync('umount', ['-l', join(machine, '..')]);
    }
    folders.clean();
  });

  const [install = ''] = shellLines('docs/install.md', 'Debian package');

  it(`says what to do next: ${install}`, () => {
    expect(inside('sh', '-c', `cd /tmp && ${install}`)).to.include('edit /etc/transitd/transitd.yaml');
  });

  it('creates the user and its folders, which nobody else can read', () => {
    expect(inside('getent', 'passwd', 'transitd')).to.match(/:\/var\/lib\/transitd:\/usr\/sbin\/nologin$/m);
    expect(['/var/lib/transitd', '/var/log/transitd'].map(modeOf)).to.deep.equal(Array(2).fill('700 transitd:transitd'));
    expect(modeOf('/etc/transitd')).to.equal('750 root:transitd');
    expect(modeOf('/etc/transitd/transitd.yaml')).to.equal('640 root:transitd');
    expect(inside('find', '/usr/lib/transitd', '-perm', '/022', '-not', '-type', 'l')).to.equal('');
  });

  it('has a configuration that the installed program accepts', () => {
    const certificate = ['-keyout', '/etc/transitd/tls.key', '-out', '/etc/transitd/tls.crt', '-subj', '/CN=n1'];
    inside('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', ...certificate);
    const { stdout } = spawnSync('chroot', [machine, 'transitd', 'doctor', '--config', '/etc/transitd/transitd.yaml'], {
      encoding: 'utf8',
      env,
    });
    expect(stdout).to.match(/\bok\b.*configuration/i);
  });

  it('encrypts as the user of the service', async () => {
    const command = ['chroot', '--userspec=transitd:transitd', machine, 'transitd', 'server', '--dev'];
    const node = await DevNode.start({ command, cwd: '/', env: { PATH: process.env['PATH'], HOME: '/var/lib/transitd' } });
    try {
      expect(await node.roundTrip()).to.match(/^svc:v1:/);
    } finally {
      await node.stop();
    }
  });

  it('keeps keys and audit files when it is purged, and no compiled sources', () => {
    expect(inside('find', '/usr/lib/transitd', '-path', '*/.cache/*', '-type', 'f'), 'root has run commands').to.not.equal('');
    expect(inside('dpkg', '--purge', 'transitd')).to.include('/var/lib/transitd stays');
    expect(['/var/lib/transitd', '/var/log/transitd'].map(modeOf)).to.deep.equal(Array(2).fill('700 transitd:transitd'));
    expect(spawnSync('chroot', [machine, 'test', '-e', '/usr/lib/transitd']).status).to.equal(1);
  });
});
