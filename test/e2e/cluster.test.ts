// Three nodes of the image on one network, through the faults of containers.
import { expect } from 'chai';
import { attempt, type Outcome } from '../cluster/harness/outcome.ts';
import { until } from '../cluster/harness/until.ts';
import { type Answer, base64 } from '../process/live-server.ts';
import { ContainerCluster } from './container-cluster.ts';
import type { NodeContainer } from './node-container.ts';
import { Writers } from './writers.ts';

describe('three nodes in containers', () => {
  let cluster: ContainerCluster;
  const plaintext = base64('written before everything else');
  let ciphertext = '';
  let writers: Writers | undefined;

  before(async () => {
    cluster = await ContainerCluster.start();
    const [first] = cluster.nodes;
    if (first === undefined) throw new Error('no node');
    ciphertext = (await cluster.ask(first, 'POST', 'transit/encrypt/before', { plaintext })).string('data.ciphertext');
  });
  afterEach(async () => {
    await writers?.stop();
    writers = undefined;
  });
  after(() => cluster?.end());

  function startWriters(): Writers {
    writers = new Writers(cluster);
    return writers;
  }

  /** Repeats a request that may be done twice: with the default timing, leadership may change on a busy machine. */
  async function done(node: NodeContainer, path: string, body: object): Promise<Answer> {
    let last: Outcome | undefined;
    return until(
      `${node.name} has done ${path}`,
      async () => {
        last = await attempt(cluster.ask(node, 'POST', path, body));
        return last.kind === 'done' && last.answer;
      },
      { explain: () => JSON.stringify(last) },
    );
  }

  /** Expects that all three nodes serve, list every acknowledged key, and decrypt the first ciphertext. */
  async function expectWhole(written: Writers): Promise<void> {
    await written.stop();
    await cluster.settled();
    for (const node of cluster.nodes) {
      // A performance standby may lack the last write for up to one heartbeat.
      await until(`${node.name} has every acknowledged key`, async () => (await written.missingOn(node)).length === 0);
      const opened = await done(node, 'transit/decrypt/before', { ciphertext });
      expect(opened.at('data.plaintext'), `${node.name}: ${opened.text}`).to.equal(plaintext);
    }
  }

  it('run as a user without rights on a read-only file system', async () => {
    const [node] = cluster.nodes;
    const script = `
      const fs = require('node:fs');
      const writes = (path) => { try { fs.writeFileSync(path, ''); return 'written'; } catch ({ code }) { return code; } };
      const status = fs.readFileSync('/proc/1/status', 'utf8');
      const cache = '/opt/transitd/node_modules/.cache/transitd';
      const compiled = fs.readdirSync(cache).map((name) => [cache, name].join('/'));
      console.log(JSON.stringify({
        uid: process.getuid(), gid: process.getgid(), capabilities: /CapEff:\\s*(\\w+)/.exec(status)[1],
        program: writes('/opt/transitd/packages/server/transitd.mjs'), root: writes('/new'),
        data: fs.statSync('/var/lib/transitd/data').mode.toString(8),
        compiled: compiled.map((folder) => ({
          forUid: folder.split('-').at(-1), owner: fs.statSync(folder).uid, files: fs.readdirSync(folder).length > 500,
        })),
      }))`;
    const { output } = (await node?.exec(['node', '-e', script])) ?? {};
    expect(JSON.parse(output ?? '')).to.deep.equal({
      uid: 65532,
      gid: 65532,
      capabilities: '0000000000000000',
      program: 'EROFS',
      root: 'EROFS',
      data: '40700',
      compiled: [{ forUid: '65532', owner: 0, files: true }],
    });
  });

  it('are healthy to the container engine, active node and standbys alike', async () => {
    for (const node of cluster.nodes) await node.expectHealthyToEngine();
  });

  it('accept writes through every node, readable at once through every other', async () => {
    for (const writer of cluster.nodes) {
      const name = `through-${writer.name}`;
      await done(writer, `transit/keys/${name}`, {});
      for (const reader of cluster.nodes) {
        const made = await done(reader, `transit/encrypt/${name}`, { plaintext });
        const opened = await done(writer, `transit/decrypt/${name}`, { ciphertext: made.string('data.ciphertext') });
        expect(opened.at('data.plaintext'), `${name} by ${reader.name}: ${opened.text}`).to.equal(plaintext);
      }
    }
  });

  it('keep serving when the leader is killed, and admit it again with its data', async () => {
    const leader = await cluster.settled();
    const written = startWriters();
    await written.more(50);
    await leader.kill('SIGKILL');
    expect(await leader.ended()).to.equal(137);
    expect(await cluster.settled(cluster.others(leader))).not.to.equal(leader);
    await written.more(50);
    await leader.startAgain();
    await expectWhole(written);
  });

  it('elect another leader when the leader is stopped, which exits with 0', async () => {
    const leader = await cluster.settled();
    const written = startWriters();
    await written.more(20);
    await leader.kill('SIGTERM');
    expect(await leader.ended()).to.equal(0);
    await cluster.settled(cluster.others(leader));
    await written.more(20);
    await leader.startAgain();
    await expectWhole(written);
  });

  it('keep serving when the leader is paused; after it resumes, it is a standby and has every write', async () => {
    const leader = await cluster.settled();
    const written = startWriters();
    await written.more(20);
    await leader.pause();
    await cluster.settled(cluster.others(leader));
    await written.more(50);
    await leader.resume();
    await leader.reaches(473);
    expect(await cluster.settled()).not.to.equal(leader);
    await expectWhole(written);
  });

  it('keep serving when the leader is partitioned, which reports it; afterwards it is a standby and has every write', async () => {
    const leader = await cluster.settled();
    const written = startWriters();
    await written.more(20);
    await leader.disconnect();
    let told = '';
    const explain = (): string => told;
    await until(
      `${leader.name} says that it serves nothing`,
      async () => {
        const { code, text } = await leader.healthcheck();
        told = text;
        return code === 2;
      },
      { explain },
    );
    expect(JSON.parse(told)).to.include({
      standby: true,
      performance_standby: false,
      ha_connection_healthy: false,
      sealed: false,
    });
    await cluster.settled(cluster.others(leader));
    await written.more(50);
    await leader.connect();
    await leader.reaches(473);
    await expectWhole(written);
  });

  for (const { who, pick } of [
    { who: 'a standby', pick: (leader: NodeContainer) => cluster.others(leader)[0] },
    { who: 'the leader', pick: (leader: NodeContainer) => leader },
  ]) {
    it(`accept an empty node that replaces ${who}, and replicate everything to it`, async () => {
      const gone = pick(await cluster.settled());
      if (gone === undefined) throw new Error('no node');
      const written = startWriters();
      await written.more(20);
      await cluster.replace(gone);
      const leader = await cluster.settled();
      expect(await cluster.voters(leader)).to.have.members(['n1', 'n2', 'n3']);
      await expectWhole(written);
    });
  }
});
