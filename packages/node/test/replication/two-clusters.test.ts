import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { ReplicationError } from '@transitd/replication';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Site } from './site.ts';

describe('two clusters that replicate', () => {
  let folder = '';
  const sites: Site[] = [];
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-two-'));
  });
  after(async () => {
    for (const { node } of sites) await node.stop();
    rmSync(folder, { recursive: true });
  });

  it('follow, hand over without loss, and fail back', async () => {
    const [east, west] = [await Site.open(folder, 'east'), await Site.open(folder, 'west')];
    sites.push(east, west);
    await east.replication.enablePrimary();
    await east.write('transit/first', 'one');
    const refused = [
      east.node.member?.snapshots?.restore(Readable.from([]), { proved: true }),
      east.node.migrateSeal(Buffer.alloc(33)),
    ];
    for (const { status } of await Promise.allSettled(refused)) expect(status).to.equal('rejected');
    await west.write('transit/own', 'is replaced');
    await west.follow(east, 'west');

    await until(() => west.node.status.state === 'sealed');
    await west.unseal(east.shares);
    expect(await west.read('transit/first')).to.equal('one');
    expect(await west.read('transit/own')).to.equal(undefined);
    expect([east.health, west.health]).to.deep.equal([200, 472]);

    await east.store.barrier.rotation.rotate();
    await east.write('transit/second', 'two');
    await until(() => west.position === east.position);
    expect(await west.read('transit/second')).to.equal('two');
    expect(west.replication.primary).to.include({ secondary: 'west', connection: 'connected' });
    await until(() => east.replication.secondaries[0]?.lag?.entries === 0);
    expect(east.replication.secondaries).to.have.length(1);
    const { digest } = west.node.eligibility.replicationStatus ?? {};
    expect(digest).to.be.a('bigint');
    expect(digest).to.equal(east.node.eligibility.replicationStatus?.digest);

    // A rekey arrives as one entry: the secondary stays unsealed, and only the new shares unseal it.
    const former = east.shares;
    await east.rekey();
    await east.write('transit/after', 'rekey');
    await until(() => west.position === east.position);
    expect(await west.read('transit/after')).to.equal('rekey');
    west.store.barrier.seal();
    const wrong = await Promise.allSettled(former.map((share) => west.node.unseal(share)));
    expect(wrong.map(({ status }) => status)).to.deep.equal(['rejected']);
    await west.unseal(east.shares);
    expect(await west.read('transit/after')).to.equal('rekey');

    const early = await west.replication.promote({ force: false }).catch((error: Error) => error);
    expect(early).to.be.instanceOf(ReplicationError);
    await east.replication.demote();
    expect(east.health).to.equal(472);
    await until(() => west.position === east.position);
    await until(() => west.replication.lastHeard?.demoted === true);
    const promoted = await west.replication.promote({ force: false });
    expect(promoted).to.include({ lossless: true, missing: 0 });
    expect(west.health).to.equal(200);
    expect(west.store.barrier.rotation.keyStatus().term, 'a new key').to.equal(3);
    await west.write('transit/third', 'three');

    await east.follow(west, 'east');
    await until(() => east.position === west.position);
    expect(await east.read('transit/third'), 'without the whole state, so without unsealing').to.equal('three');
    expect([east.health, west.health]).to.deep.equal([472, 200]);
  });

  it('connect again by another token, and with the whole state', async () => {
    const [former, primary] = sites;
    if (former === undefined || primary === undefined) throw new Error('the tests before have failed');
    const refusal = (task: Promise<unknown>) => task.catch((error: Error) => error);
    const other = await Site.open(folder, 'other');
    sites.push(other);
    await other.replication.enablePrimary();
    await until(() => (other.node.member?.cluster?.membershipList.members.length ?? 0) > 0);
    const foreign = await other.replication.issueToken({ secondary: 'east' });
    expect(await refusal(former.replication.updatePrimary(foreign)))
      .to.be.instanceOf(ReplicationError)
      .with.property('message')
      .that.includes('another replication set');

    const unread = await primary.replication.issueToken({
      secondary: 'east',
      publicKey: await former.replication.makeTokenKey(),
    });
    const publicKey = await former.replication.makeTokenKey();
    expect(await refusal(former.replication.updatePrimary(unread))).to.be.instanceOf(ReplicationError);
    await former.replication.updatePrimary(await primary.replication.issueToken({ secondary: 'east', publicKey }));
    await primary.write('transit/fourth', 'four');
    await until(() => former.position === primary.position);
    expect(await former.read('transit/fourth')).to.equal('four');
    expect(await former.read('core/replication/token-key'), 'used').to.equal(undefined);

    let isReceived = false;
    const unwatch = former.store.barrier.store.watch('transit/', (changes) => {
      isReceived ||= changes === 'everything';
    });
    former.replication.recover({ wholeState: true });
    await until(() => isReceived);
    unwatch();
    await primary.write('transit/fifth', 'five');
    await until(() => former.position === primary.position);
    expect(await former.read('transit/fifth')).to.equal('five');
    expect([former.health, primary.health]).to.deep.equal([472, 200]);
  });

  it('end replication on the primary only; its secondary can still be promoted', async () => {
    const [former, primary] = sites;
    if (former === undefined || primary === undefined) throw new Error('the tests before have failed');
    expect(await former.replication.disablePrimary().catch((error: Error) => error))
      .to.be.instanceOf(ReplicationError)
      .with.property('message')
      .that.includes('not a primary');
    await primary.replication.disablePrimary();
    expect(primary.node.eligibility.replicationStatus).to.equal(undefined);
    await primary.write('transit/sixth', 'six');
    expect(primary.health).to.equal(200);
    expect(former.health, 'it waits for its primary').to.equal(472);
    await former.replication.promote({ force: true });
    await until(() => former.health === 200);
    expect(await former.read('transit/fifth')).to.equal('five');
    expect(await former.read('transit/sixth')).to.equal(undefined);
    await former.replication.disablePrimary();
    expect(
      await former.store.barrier.store.get('core/replication/primary'),
      'the credential of its time as a secondary',
    ).to.equal(undefined);
    await former.write('transit/own', 'again');
  });

  it('both serve after a secondary has left the set, which ends nothing at the primary', async () => {
    const [primary, left] = sites;
    if (left === undefined || primary === undefined) throw new Error('the tests before have failed');
    await primary.replication.enablePrimary();
    await left.follow(primary, 'north');
    await until(() => left.position === primary.position && left.health === 472);
    const keyring = await left.store.replica.get('core/keyring');
    expect(await left.replication.disableSecondary({ force: false }).catch((error: Error) => error))
      .to.be.instanceOf(ReplicationError)
      .with.property('message')
      .that.includes('revoke this secondary there');
    expect(left.health).to.equal(472);
    await left.replication.disableSecondary({ force: true });
    await until(() => left.health === 200);
    expect(await left.read('transit/own'), 'what it has received remains').to.equal('again');
    const own = await left.store.replica.get('core/keyring');
    expect(Buffer.from(own?.value ?? []).equals(Buffer.from(keyring?.value ?? [])), 'it encrypts with a key of its own').to.equal(
      false,
    );
    await left.write('transit/left', 'alone');
    await primary.write('transit/seventh', 'seven');
    expect([primary.health, left.health, await left.read('transit/seventh')]).to.deep.equal([200, 200, undefined]);
    expect(left.replication.primary).to.equal(undefined);
    expect(await left.store.barrier.store.get('core/replication/primary'), 'its credential').to.equal(undefined);
  });
});
