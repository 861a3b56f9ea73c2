import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Site } from './site.ts';

/** After each change of the barrier's records, checks that a node with these records and its own seal key can unseal. */
class OpenableStates {
  readonly #site: Site;
  readonly #unwatch: () => void;
  #checked = Promise.resolve();
  count = 0;

  constructor(site: Site) {
    this.#site = site;
    this.#unwatch = site.store.replica.watch('core/', () => {
      this.#checked = this.#checked.then(() => this.#check());
    });
  }

  /** Resolves when the changes so far are checked. @throws if a node could not unseal with one of them */
  async end(): Promise<number> {
    this.#unwatch();
    await this.#checked;
    return this.count;
  }

  async #check(): Promise<void> {
    const { replica, barrier } = this.#site.store;
    const [seal, keyring, again] = [
      await replica.get('core/seal'),
      await replica.get('core/keyring'),
      await replica.get('core/seal'),
    ];
    if (seal?.revision !== again?.revision) return; // both changed in between, which is another change to check
    const records = { 'core/seal': seal?.value, 'core/keyring': keyring?.value };
    await barrier.requireOpenable(new Map(Object.entries(records).map(([path, value]) => [path, value ?? Buffer.of()])));
    this.count += 1;
  }
}

/** Waits until a whole state has replaced that of a cluster, whose node has unsealed itself with it. */
async function receives(site: Site): Promise<void> {
  const { barrier } = site.store;
  let wasSealed = false;
  const remove = barrier.onStateChange(({ sealed }) => {
    wasSealed ||= sealed;
  });
  await until(() => wasSealed && !barrier.state.sealed && site.node.active);
  remove();
}

describe('two clusters with seals of their own', () => {
  let folder = '';
  const sites: Site[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-own-seals-'));
  });
  afterEach(async () => {
    for (const { node } of sites.splice(0)) await node.stop();
    rmSync(folder, { recursive: true });
  });
  const open = async (name: string): Promise<Site> => {
    const site = await Site.openWithStaticSeal(folder, name);
    sites.push(site);
    return site;
  };

  it('unseal by themselves after each entry of a swap, a rotation and rekeys, hand over, and fail back', async () => {
    const [east, west] = [await open('east'), await open('west')];
    await east.replication.enablePrimary();
    await east.write('transit/first', 'one');
    const states = new OpenableStates(west);
    const received = receives(west);
    await west.follow(east, 'west');
    await received;
    await until(() => west.position === east.position);
    expect(await west.read('transit/first')).to.equal('one');

    await east.store.barrier.rotation.rotate();
    await east.write('transit/second', 'two');
    await until(() => west.position === east.position);
    for (const round of ['three', 'four']) {
      await east.rekey();
      await east.write('transit/third', round);
      await until(() => west.position === east.position);
      expect(await west.read('transit/third')).to.equal(round);
      expect(west.store.barrier.state.sealed, 'it stays unsealed').to.equal(false);
    }
    expect(await states.end(), 'a swap, a rotation and two rekeys').to.be.at.least(4);
    const digestOf = ({ node }: Site) => node.eligibility.replicationStatus?.digest;
    await until(() => digestOf(west) !== undefined && digestOf(west) === digestOf(east));

    await east.replication.demote();
    await until(() => west.position === east.position && west.replication.lastHeard?.demoted === true);
    await west.replication.promote({ force: false });
    west.shares = east.shares;
    await west.rekey();
    await west.write('transit/fourth', 'five');
    const returned = new OpenableStates(east);
    await east.follow(west, 'east');
    await until(() => east.position === west.position && east.position !== undefined);
    expect(await east.read('transit/fourth')).to.equal('five');
    expect(await returned.end()).to.be.at.least(1);
    expect([east.health, west.health]).to.deep.equal([472, 200]);
  });

  it('stay unsealed by a rotation and a rekey that were made while they were not connected', async () => {
    const [east, west] = [await open('east'), await open('west')];
    await east.replication.enablePrimary();
    const received = receives(west);
    await west.follow(east, 'west');
    await received;
    await until(() => west.replication.primary?.connection === 'connected');
    const states = new OpenableStates(west);
    await east.replication.revoke('west'); // until it has another token, entries of the primary collect
    await until(() => west.replication.primary?.connection !== 'connected');
    await east.store.barrier.rotation.rotate();
    await east.rekey();
    await east.write('transit/key', 'after');
    await west.replication.updatePrimary(await east.replication.issueToken({ secondary: 'west' }));
    await until(() => west.position === east.position);
    expect(await west.read('transit/key')).to.equal('after');
    expect(await states.end()).to.be.at.least(2);
  });

  it('do not replicate with a cluster that needs shares', async () => {
    const [east, west] = [await open('east'), await Site.open(folder, 'west')];
    sites.push(west);
    await east.replication.enablePrimary();
    const refusal = await west.follow(east, 'west').catch((error: Error) => error);
    expect(String(refusal)).to.match(/the primary has a seal that needs no shares, and this cluster has a seal of type shamir/);
    await west.replication.enablePrimary();
    await east.replication.disablePrimary();
    const reverse = await east.follow(west, 'east').catch((error: Error) => error);
    expect(String(reverse)).to.match(/the primary has a shamir seal, and this cluster has a seal of type static/);
    await west.write('transit/key', 'still its own');
  });
});
