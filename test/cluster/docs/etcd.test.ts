// @live
import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { type LiveEtcd, liveEtcd } from '../../../packages/storage-etcd/test/live-etcd.ts';
import { runBlocks, shellBlocks } from '../../docs/page.ts';
import { processMs } from '../../process/live-server.ts';

const page = 'docs/etcd.md';

describe(page, function () {
  this.timeout(processMs);
  let etcd: LiveEtcd;
  before(async () => {
    etcd = await liveEtcd();
  });
  after(() => etcd.stop());

  it('has commands that start nodes on one etcd, use them, restore a backup, and move them to disks and back', async () => {
    const nodes = shellBlocks(page, 'Your etcd, ten nodes');
    expect(nodes).to.have.length(4);
    const blocks = [...nodes.slice(0, -1), ...shellBlocks(page, 'Backup and restore'), ...nodes.slice(-1)];
    const whenStopped = 'for pid in $(cat pids); do while kill -0 $pid 2> /dev/null; do sleep 0.1; done; done; > pids';
    const moves = shellBlocks(page, 'Moving a cluster between Raft and etcd');
    expect(moves).to.have.length(2);
    // A loopback address that no other test uses, so that the ports of the page are free.
    const host = `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;
    const replace = { 'http://127.0.0.1:2379': etcd.endpoint, '127.0.0.1:83': `${host}:83`, 'seq 0 9': 'seq 0 2' };
    const guarded = ["trap 'xargs -r kill < pids' ERR", ...blocks, whenStopped, ...moves];
    const { code, stdout, stderr } = await runBlocks(guarded, { replace });
    expect(code, `${stdout}${stderr}`).to.equal(0);
    expect(stdout).to.include('"ciphertext":"svc:v1:');
    expect(stdout).to.include('Restored the snapshot.');
    const digests = [...stdout.matchAll(/^digest +([0-9a-f]{64})$/gm)].map(([, digest]) => digest);
    expect(digests).to.have.length(3);
    expect(digests[1]).to.equal(digests[0]);
    expect(stderr.match(/read all records back/g)).to.have.length(2);
  });
});
