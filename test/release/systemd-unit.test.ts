// The systemd unit: how much it leaves open, and whether a node works within its limits. The tests run without systemd as the first
// process, so the limits of system calls and sockets are compared with those that a node uses.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { folderName } from '../../scripts/release/archive.ts';
import type { Platform } from '../../scripts/release/node-binary.ts';
import { root } from '../../scripts/release/project.ts';
import { artifact, Folders } from './artifacts.ts';
import { DevNode } from './dev-node.ts';

const unit = join(root, 'deploy/systemd/transitd.service');
const text = readFileSync(unit, 'utf8');
const folders = new Folders();
after(() => folders.clean());

/** Returns the values of a setting, which may be given several times. */
const valuesOf = (setting: string): string[] =>
  [...text.matchAll(new RegExp(`^${setting}=(.*)$`, 'gm'))].flatMap(([, value = '']) => value.split(' '));

/** Returns the system calls of a set such as `@system-service`, with the calls of the sets that it includes. */
function callsOf(set: string): string[] {
  const listed = execFileSync('systemd-analyze', ['syscall-filter', '--no-pager', set], { encoding: 'utf8' });
  const lines = listed.split('\n').map((line) => line.trim());
  return lines
    .filter((line) => line !== '' && line !== set && !line.startsWith('#'))
    .flatMap((line) => (line.startsWith('@') ? callsOf(line) : [line]));
}

describe('the systemd unit', () => {
  it('has an exposure of at most 2.0 of 10', () => {
    const { status, stdout } = spawnSync(
      'systemd-analyze',
      ['security', '--offline=true', '--threshold=20', '--no-pager', unit],
      {
        encoding: 'utf8',
      },
    );
    expect(stdout, 'systemd-analyze must be installed (Debian: systemd)').to.match(/Overall exposure level/);
    expect(status, stdout).to.equal(0);
  });

  it('lets the node write the folders of the example configuration', () => {
    const example = readFileSync(join(root, 'deploy/transitd.example.yaml'), 'utf8');
    const written = [...example.matchAll(/\/var\/(lib|log)\/(\w+)/g)].map(([, kind, name]) => `${kind} ${name}`);
    const allowed = [
      ...valuesOf('StateDirectory').map((name) => `lib ${name}`),
      ...valuesOf('LogsDirectory').map((name) => `log ${name}`),
    ];
    expect(written).to.have.members(allowed);
  });

  it('allows the system calls and sockets that a node uses', async () => {
    const folder = folders.empty();
    const trace = join(folder, 'trace');
    const platform = `${process.platform}-${process.arch}` as Platform;
    execFileSync('tar', ['-C', folder, '-xf', artifact(`${folderName(platform)}.tar.gz`)]);
    const program = join(folder, folderName(platform), 'bin/transitd');
    const command = ['strace', '-f', '-qq', '-e', 'signal=none', '-o', trace, program, 'server', '--dev'];
    const node = await DevNode.start({ command, cwd: folder, env: { PATH: process.env['PATH'], HOME: folder } });
    try {
      await node.roundTrip();
    } finally {
      await node.stop();
    }
    const lines = readFileSync(trace, 'utf8').split('\n');
    const used = new Set(lines.map((line) => /^\d+ +(\w+)\(/.exec(line)?.[1]).filter((name) => name !== undefined));
    expect(used.size).to.be.above(40);
    const [allowedSet = '', refusedSet = ''] = valuesOf('SystemCallFilter');
    const refused = new Set(callsOf(refusedSet.replace('~', '')));
    const allowed = new Set(callsOf(allowedSet).filter((name) => !refused.has(name)));
    expect([...used].filter((name) => !allowed.has(name))).to.deep.equal([]);
    const families = new Set(lines.map((line) => /socket\((AF_\w+)/.exec(line)?.[1]).filter((name) => name !== undefined));
    expect(valuesOf('RestrictAddressFamilies'))
      .to.include.members([...families])
      .and.include('AF_INET');
  });
});
