import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MemberEvents } from '@transitd/cluster';
import { noObserver, StartError } from '@transitd/process';
import { StorageFailed } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { DataDirectory } from '../../src/storage/data-directory.ts';

describe('a data directory', () => {
  let path: string;
  beforeEach(() => {
    path = mkdtempSync(join(tmpdir(), 'transitd-data-'));
  });
  afterEach(() => rmSync(path, { recursive: true }));

  it('names the error of the system when its lock cannot be opened', async () => {
    mkdirSync(join(path, 'lock/LOCK'), { recursive: true });
    const error = await DataDirectory.open(path).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(StartError);
    expect(String(error)).to.match(/data_dir: .* cannot be used: .*Is a directory/);
  });

  it('has no open file but its lock after its storage could not be opened, because a start is repeated every second', async () => {
    const directory = await DataDirectory.open(path);
    const before = openFiles(path);
    await directory.bootstrapCluster();
    mkdirSync(join(path, 'generation-1'), { recursive: true });
    writeFileSync(join(path, 'generation-1', 'state'), 'no directory');
    const raft = { heartbeat: 150, lease: 0, election_timeout: 1000, snapshot_threshold: 1, trailing_logs: 1, disk_reserve: 0 };
    const onFatal = (error: Error): never => expect.fail(error.message);
    const error = await directory.openStorage({ raft, onFatal, events: new MemberEvents(), observer: noObserver }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(Error);
    expect(openFiles(path)).to.deep.equal(before);
    await directory.close();
  });

  it('tells a start without a note of the uses of keys from one whose note cannot be read, or cannot be written', async () => {
    const directory = await DataDirectory.open(path);
    expect(await directory.notedUsage()).to.equal('');
    for (const process of ['p', 'unknown']) {
      await directory.noteUsage(process);
      expect(await directory.notedUsage()).to.equal(process);
    }
    for (const damaged of ['', '{"format":2,"process":"p"}', 'p']) {
      writeFileSync(join(path, 'usage'), damaged);
      expect(await directory.notedUsage().catch(() => 'refused'), damaged).to.equal('refused');
    }
    mkdirSync(join(path, 'usage.new'));
    const error = await directory.noteUsage('p').then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(StorageFailed);
    expect(String(error)).to.match(/usage cannot be written: /);
    await directory.close();
  });
});

/** Returns the paths below the folder that this process has open. */
const openFiles = (folder: string): readonly string[] =>
  readdirSync('/proc/self/fd')
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return ''; // closed meanwhile
      }
    })
    .filter((path) => path.startsWith(folder))
    .toSorted();
