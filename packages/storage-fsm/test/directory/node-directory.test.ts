import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LogStore } from '@transitd/raft-core';
import { expect } from 'chai';
import { createNode, hasNode } from '../../src/directory/node-directory.ts';
import { StorageInUse } from '../../src/errors.ts';
import { SegmentLog } from '../../src/log/segment-log.ts';
import { close, genesis } from '../log/log-calls.ts';

const identity = { clusterId: 'a cluster', nodeId: 2 ** 47 + 5, base: genesis };

describe('a data directory', () => {
  let directory: string;
  let log: LogStore | undefined;
  beforeEach(async () => {
    directory = join(await mkdtemp(join(tmpdir(), 'segment-log-')), 'data');
    log = undefined;
  });
  afterEach(async () => {
    if (log !== undefined) await close(log);
    await rm(join(directory, '..'), { recursive: true });
  });

  it('holds no node until one is created', async () => {
    expect(await hasNode(directory)).to.equal(false);
    await createNode(directory, identity);
    expect(await hasNode(directory)).to.equal(true);
  });

  it('cannot become another node', async () => {
    await createNode(directory, identity);
    expect(await createNode(directory, { ...identity, nodeId: 1 }).catch((error: Error) => error)).to.be.instanceOf(Error);
    log = await SegmentLog.open(directory);
    expect(log.start.nodeId).to.equal(identity.nodeId);
  });

  it('is readable by its owner only', async () => {
    await createNode(directory, identity);
    log = await SegmentLog.open(directory, { growBytes: 4096 });
    const modeOf = async (path: string) => ((await stat(join(directory, path))).mode & 0o777).toString(8);
    expect(await modeOf('')).to.equal('700');
    for (const { name, parentPath } of await readdir(directory, { recursive: true, withFileTypes: true }))
      if (!parentPath.endsWith('lock'))
        expect(await modeOf(join(parentPath.slice(directory.length), name)), name).to.be.oneOf(['600', '700']);
  });

  it('is free again as soon as the process that used it is killed', async () => {
    await createNode(directory, identity);
    const holder = spawn(process.execPath, [join(import.meta.dirname, 'hold-directory.ts'), directory], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await once(holder.stdout, 'data');
      expect(await SegmentLog.open(directory).catch((error: unknown) => error)).to.be.instanceOf(StorageInUse);
    } finally {
      holder.kill('SIGKILL');
      await once(holder, 'exit');
    }
    log = await SegmentLog.open(directory, { growBytes: 4096 });
    expect(log.start.incarnation).to.equal(2);
  });

  it('can be locked although files next to the lock are unreadable', async () => {
    await createNode(directory, identity);
    await writeFile(join(directory, 'lock', 'CURRENT'), 'no name');
    log = await SegmentLog.open(directory, { growBytes: 4096 });
    expect(await SegmentLog.open(directory).catch((error: unknown) => error)).to.be.instanceOf(StorageInUse);
  });

  it('is used by one process at a time', async () => {
    await createNode(directory, identity);
    log = await SegmentLog.open(directory, { growBytes: 4096 });
    expect(await SegmentLog.open(directory).catch((error: unknown) => error)).to.be.instanceOf(StorageInUse);
    await close(log);
    log = await SegmentLog.open(directory, { growBytes: 4096 });
  });
});
