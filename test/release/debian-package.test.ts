// Installs, removes and purges the Debian package with dpkg, in a copy of this machine's file system that is thrown away afterwards.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { debianName } from '../../scripts/release/debian-package.ts';
import { artifact, Folders, shellLines } from './artifacts.ts';
import { DevNode } from './dev-node.ts';

const folders = new Folders();
const output = (program: string, ...args: string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 26 });

describe('the Debian package', () => {
  let machine: string;
  let mounted = false;
  const inside = (...command: string[]): string => output('chroot', machine, ...command);
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
    execFileSync('cp', [artifact(debianName), join(machine, 'tmp')]);
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

  it('keeps keys and audit files when it is purged', () => {
    expect(inside('dpkg', '--purge', 'transitd')).to.include('/var/lib/transitd stays');
    expect(['/var/lib/transitd', '/var/log/transitd'].map(modeOf)).to.deep.equal(Array(2).fill('700 transitd:transitd'));
    expect(spawnSync('chroot', [machine, 'test', '-e', '/usr/lib/transitd']).status).to.equal(1);
  });
});
