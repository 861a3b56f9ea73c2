// Unpacks the archive of this machine's platform into an empty folder, without npm, a compiler or a Node on PATH.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { awsMock, awsRegion } from '../../packages/seals/test/awskms/aws-mock.ts';
import { folderName, packFolder, stageArchive } from '../../scripts/release/archive.ts';
import type { Platform } from '../../scripts/release/node-binary.ts';
import { freePort } from '../cluster/harness/free-port.ts';
import { until } from '../cluster/harness/until.ts';
import { artifact, Folders, shellLines } from './artifacts.ts';
import { DevNode } from './dev-node.ts';

const platform = `${process.platform}-${process.arch}` as Platform;
const archive = artifact(`${folderName(platform)}.tar.gz`);
const [, start = ''] = shellLines('scripts/release/archive-readme.md');
const folders = new Folders();
const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

after(() => folders.clean());

describe(`the archive for ${platform}`, () => {
  let folder: string;
  let env: NodeJS.ProcessEnv;

  /** Only these programs exist for the release: a shell, and the tools of its start script. */
  function bareMachine(): string {
    const bin = folders.empty();
    for (const program of ['sh', 'readlink', 'dirname']) symlinkSync(join('/usr/bin', program), join(bin, program));
    return bin;
  }

  before(() => {
    folder = folders.empty();
    env = { PATH: `${join(folder, folderName(platform), 'bin')}:${bareMachine()}`, HOME: folders.empty() };
  });

  it(`encrypts after "tar xf" and "${start}"`, async () => {
    expect(start).to.match(/^transitd server --dev/);
    const begin = performance.now();
    execFileSync('tar', ['-C', folder, '-xf', archive]);
    const node = await DevNode.start({ command: ['/usr/bin/env', ...start.split(' ')], cwd: folders.empty(), env });
    try {
      expect(await node.roundTrip()).to.match(/^svc:v1:/);
      console.log(`      from tar xf to the first ciphertext: ${((performance.now() - begin) / 1000).toFixed(1)} s`);
      await node.expectConsole();
    } finally {
      await node.stop();
    }
  });

  it('contains the optional SDK of AWS: a node initializes by a seal with a key in AWS KMS, and unseals itself', async () => {
    const mock = await awsMock();
    Object.defineProperty(mock.state, 'nowMs', { get: () => Date.now() });
    mock.state.credentials.set('AKIDEXAMPLE', { secret: 'the+secret+of+this+test', session: undefined });
    const [home, port] = [folders.empty(), await freePort('127.0.0.1')];
    const config = join(home, 'transitd.json');
    writeFileSync(
      config,
      JSON.stringify({
        ...{ node_id: 'n1', data_dir: join(home, 'data'), raft: { disk_reserve: 1 } },
        listeners: [{ address: `127.0.0.1:${port}`, tls_disable: true }],
        seal: { type: 'awskms', region: awsRegion, kms_key_id: 'one', endpoint: mock.address },
      }),
    );
    const credentials = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'the+secret+of+this+test' };
    let child: ChildProcess | undefined;
    const stop = async (): Promise<void> => {
      if (child !== undefined && child.exitCode === null && child.kill()) await once(child, 'close');
    };
    const startAndWaitFor = async (expected: number): Promise<void> => {
      const node = spawn('/usr/bin/env', ['transitd', 'server', '--config', config], {
        env: { ...env, ...credentials },
        cwd: home,
      });
      child = node;
      const output: string[] = [];
      for (const stream of [node.stdout, node.stderr]) stream.setEncoding('utf8').on('data', (text: string) => output.push(text));
      await until(`the node reports ${expected}`, async () => {
        if (node.exitCode !== null) throw new Error(output.join(''));
        const answer = await fetch(`http://127.0.0.1:${port}/v1/sys/health`).catch(() => undefined);
        return answer?.status === expected;
      });
    };
    try {
      await startAndWaitFor(501);
      const body = JSON.stringify({ recovery_shares: 1, recovery_threshold: 1 });
      const answer = await fetch(`http://127.0.0.1:${port}/v1/sys/init`, { method: 'POST', body });
      expect(answer.status).to.equal(200);
      await stop();
      await startAndWaitFor(200);
    } finally {
      await stop();
      await mock.close();
    }
  });

  it('runs from another folder through a symbolic link', () => {
    const link = join(folders.empty(), 'transitd');
    symlinkSync(join(folder, folderName(platform), 'bin/transitd'), link);
    expect(execFileSync(link, ['version'], { env, encoding: 'utf8' })).to.include('0.1.0');
  });

  it('has the same bytes when it is made again, with another umask', () => {
    const again = join(folders.empty(), folderName(platform));
    const umask = process.umask(0o077);
    try {
      stageArchive(platform, again);
      packFolder(again, `${again}.tar.gz`);
    } finally {
      process.umask(umask);
    }
    expect(sha256(`${again}.tar.gz`)).to.equal(sha256(archive));
  });

  it('contains only files that root may write and everybody may read', () => {
    const listed = execFileSync('tar', ['-tvzf', archive], { encoding: 'utf8', maxBuffer: 1 << 26 })
      .trimEnd()
      .split('\n');
    expect(listed.filter((line) => !/^[d-]rw[x-]r-[x-]r-[x-] 0\/0 /.test(line))).to.deep.equal([]);
  });
});
