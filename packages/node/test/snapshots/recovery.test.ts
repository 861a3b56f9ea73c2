import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { encodeMembership, overtakenFile, recordExclusion, removalFile } from '@transitd/cluster';
import { StartError } from '@transitd/process';
import { bootstrapBase, type Entry, encodeConfState } from '@transitd/raft-core';
import { noProof, readArchive } from '@transitd/snapshot-archive';
import { createNode, LocalReplica, SegmentLog } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { type Recovery, withRecovery } from '../../src/snapshots/recovery.ts';

const self = 7;
const { conf: alone } = bootstrapBase(self);
const member = {
  id: self,
  name: 'n1',
  apiAddress: 'https://n1.example:8200',
  clusterAddress: 'n1.example:8201',
  certificate: 'ab'.repeat(32),
  nonVoter: false,
  levels: { oldest: 1, newest: 1 },
};

/** Returns the log entry that a replica proposes when one record is written. */
async function putOf(path: string): Promise<Uint8Array> {
  const { promise, resolve } = Promise.withResolvers<Uint8Array>();
  const replica = new LocalReplica({
    consensus: { propose: resolve, readIndex: () => undefined, status: () => expect.fail('nobody asks') },
    machine: { applied: { appliedIndex: 0, valuesWritten: 0, digest: 0n }, featureLevel: 1, getSync: () => undefined } as never,
    diskLow: () => false,
  });
  void replica.commit({ conditions: [], writes: [{ path, value: Buffer.from('value') }] });
  return promise;
}

describe('a recovery', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-recovery-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Creates a stopped node with these entries in its log, none known to be committed. */
  async function stoppedNode(entries: readonly Pick<Entry, 'type' | 'data'>[], name = 'node'): Promise<string> {
    const directory = join(folder, name);
    await createNode(directory, { clusterId: 'c', nodeId: self, base: bootstrapBase(self) });
    const log = await SegmentLog.open(directory);
    const stored = entries.map((entry, at) => ({ ...entry, term: 1, index: at + 1 }));
    await new Promise<void>((resolve, reject) =>
      log.write({ hardState: { term: 1, vote: self, commit: 0 }, entries: stored }, (error) =>
        error ? reject(error) : resolve(),
      ),
    );
    await new Promise<void>((resolve) => log.close(() => resolve()));
    return directory;
  }
  const seen = (directory: string): Promise<Pick<Recovery, 'name' | 'isMember' | 'records'>> =>
    withRecovery(directory, {}, async ({ name, isMember, records }) => ({ name, isMember, records }));
  const put = async () => ({ type: 'normal', data: await putOf('a') }) as const;
  const conf = (change: Partial<typeof alone>) => ({ type: 'conf', data: encodeConfState({ ...alone, ...change }) }) as const;

  it('fails with one sentence for a log at a feature level that this program does not support', async () => {
    const raise = Buffer.from('03ffffffff', 'hex');
    const directory = await stoppedNode([await put(), { type: 'normal', data: raise }]);
    const error = await seen(directory).catch((caught: unknown) => caught);
    expect(error).to.be.instanceOf(StartError);
    expect((error as Error).message).to.match(/is at feature level 4294967295, and this program supports/);
  });

  it('makes a readable archive that says it has no proof', async () => {
    const directory = await stoppedNode([await put()]);
    const archive = await withRecovery(directory, {}, (recovery) => buffer(recovery.archive()));
    const statePath = join(folder, 'state.bin');
    const read = await readArchive(
      (async function* () {
        yield archive;
      })(),
      { statePath, bytesMax: 1e6, watch: () => undefined },
    );
    expect(read.meta).to.include({ clusterId: 'c', index: 1, term: 1 });
    expect(read.proof).to.deep.equal(noProof);
  });

  it('has the name of the node from the newest configuration', async () => {
    const context = encodeMembership({ members: [member], removed: [] });
    expect(await seen(await stoppedNode([await put(), conf({ context })]))).to.deep.equal({
      name: 'n1',
      isMember: true,
      records: 1,
    });
  });

  it('reports that the node was no longer a member', async () => {
    const found = await seen(await stoppedNode([await put(), conf({ voters: [8], context: Buffer.alloc(0) })]));
    expect(found).to.include({ name: undefined, isMember: false });
    const excluded = await stoppedNode([await put()], 'excluded');
    expect(await seen(excluded)).to.include({ isMember: true });
    await recordExclusion(excluded, removalFile, {});
    expect(await seen(excluded)).to.include({ isMember: false });
  });

  it('reports that the disk of the node was rolled back to an older state', async () => {
    const directory = await stoppedNode([await put()]);
    const isOvertaken = () => withRecovery(directory, {}, async (recovery) => recovery.isOvertaken);
    expect(await isOvertaken()).to.equal(false);
    await recordExclusion(directory, overtakenFile, {});
    expect(await isOvertaken()).to.equal(true);
  });

  it('succeeds with a membership list of an unknown format', async () => {
    const found = await seen(await stoppedNode([await put(), conf({ context: Buffer.from('{"format":9}') })]));
    expect(found).to.include({ name: undefined, isMember: true, records: 1 });
  });

  for (const { what, make, pattern } of [
    { what: 'without records', make: () => stoppedNode([conf({})]), pattern: /holds no record to recover$/ },
    {
      what: 'that other users can read',
      make: async () => {
        const directory = await stoppedNode([await put()]);
        chmodSync(directory, 0o750);
        return directory;
      },
      pattern: /has mode 0750/,
    },
    { what: 'that does not exist', make: async () => join(folder, 'nowhere'), pattern: /holds no node$/ },
  ])
    it(`of a node ${what} is refused`, async () => {
      const directory = await make();
      const error = await seen(directory).catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(StartError).and.have.property('message').that.matches(pattern);
    });
});
