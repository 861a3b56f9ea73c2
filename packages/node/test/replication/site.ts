import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { parseConfig } from '@transitd/configuration';
import { defaultCodes, healthAnswer } from '@transitd/health';
import { expect } from 'chai';
import { pino } from 'pino';
import { freePort } from '../../../../test/cluster/harness/free-port.ts';
import { until } from '../../../process/test/until.ts';
import { Node } from '../../src/node.ts';
import type { RestoreResult } from '../../src/snapshots/snapshots.ts';

interface SiteSettings {
  readonly node_id: string;
  readonly cluster_addr?: string;
  readonly seal?: object;
  readonly barrier_rotation?: object;
  readonly limits?: object;
  readonly clocks?: NonNullable<Parameters<typeof Node.open>[0]['clocks']>;
}

/** A cluster of one node. */
export class Site {
  readonly node: Node;
  shares: readonly Uint8Array[] = [];
  readonly rootToken: string = '';

  readonly #folder: string;
  readonly #settings: SiteSettings;

  private constructor(node: Node, folder: string, settings: SiteSettings) {
    this.node = node;
    this.#folder = folder;
    this.#settings = settings;
  }

  static async open(folder: string, name: string, more: Omit<SiteSettings, 'node_id'> = {}): Promise<Site> {
    const site = await Site.#start(folder, { node_id: name, cluster_addr: `127.0.0.1:${await freePort('127.0.0.1')}`, ...more });
    const { shares, rootToken } = await site.node.initialize({ secretShares: 1, secretThreshold: 1 });
    Object.assign(site, { shares, rootToken });
    await site.unseal(shares);
    return site;
  }

  /** Starts the node of a site again that has stopped, without a cluster port. */
  static async reopenWithoutPort(folder: string, name: string, shares: readonly Uint8Array[]): Promise<Site> {
    const site = await Site.#start(folder, { node_id: name });
    await site.unseal(shares);
    return site;
  }

  /** Stops the node, and returns the same site with a new process of it. */
  async restarted(shares: readonly Uint8Array[]): Promise<Site> {
    await this.node.stop();
    const site = await Site.#start(this.#folder, this.#settings);
    await site.unseal(shares);
    return site;
  }

  /** A cluster of one node with a static seal, which has a key of its own and recovery shares. */
  static async openWithStaticSeal(folder: string, name: string): Promise<Site> {
    const keys = join(folder, `${name}-keys`);
    mkdirSync(keys, { recursive: true });
    const keyFile = join(keys, 'seal.key');
    writeFileSync(keyFile, randomBytes(32).toString('base64'), { mode: 0o600 });
    const seal = { type: 'static', key_id: name, key_file: keyFile };
    const site = await Site.#start(folder, { node_id: name, cluster_addr: `127.0.0.1:${await freePort('127.0.0.1')}`, seal });
    const { shares } = await site.node.initialize({ recoveryShares: 2, recoveryThreshold: 2 });
    site.shares = shares;
    await until(() => site.node.active);
    return site;
  }

  static async #start(folder: string, settings: SiteSettings): Promise<Site> {
    const { clocks, ...configured } = settings;
    const config = parseConfig({
      ...configured,
      api_addr: 'http://127.0.0.1:8200',
      data_dir: join(folder, settings.node_id),
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
    });
    const onFatal = (error: Error): never => {
      throw error;
    };
    const log = pino({ level: process.env['DR_LOG'] ?? 'silent' });
    const node = await Node.open({ config, log, onFatal, ...(clocks && { clocks }) });
    return new Site(node, folder, settings);
  }

  get store() {
    return this.node.requireMember();
  }

  get replication() {
    const { replication } = this.store;
    if (replication === undefined) throw new TypeError('the node has no cluster port');
    return replication;
  }

  /** The engine of the mount `transit/`. */
  get engine() {
    const engine = this.services.mounts.engines.get('transit');
    if (engine === undefined) throw new TypeError('there is no mount transit/');
    return engine;
  }

  get services() {
    const { services } = this.node;
    if (services === undefined) throw new TypeError('the node is sealed');
    return services;
  }

  get epochs() {
    return this.node.eligibility.replication?.epochs ?? [];
  }

  get health(): number {
    const query = { standbyOk: true, performanceStandbyOk: true, codes: defaultCodes };
    return healthAnswer(this.node.status, query, { monotonicMs: performance.now(), utcMs: Date.now() }).code;
  }

  get position(): number | undefined {
    return this.node.eligibility.replicationStatus?.position;
  }

  async unseal(shares: readonly Uint8Array[]): Promise<void> {
    for (const share of shares) await this.node.unseal(share);
    await until(() => this.node.active);
  }

  async write(path: string, value: string): Promise<void> {
    const writes = [{ path, value: Buffer.from(value) }];
    expect((await this.store.barrier.store.commit({ conditions: [], writes })).outcome).to.equal('committed');
  }

  async read(path: string): Promise<string | undefined> {
    const record = await this.store.barrier.store.get(path);
    return record && Buffer.from(record.value).toString();
  }

  /** Resolves once it is stored that this secondary counts at its primary. */
  async counted(): Promise<void> {
    while ((await this.read('core/replication/primary'))?.includes('"isCounted":true') !== true) await setImmediate();
  }

  get snapshots() {
    return this.node.requireMember().snapshots;
  }

  /** Returns an archive of the present state. */
  async backup(): Promise<Buffer> {
    return Buffer.concat(await (await this.snapshots.take()).toArray());
  }

  restore(archive: Buffer, { proved = true }: { readonly proved?: boolean } = {}): Promise<RestoreResult> {
    return this.snapshots.restore(Readable.from([archive]), { proved });
  }

  /** Replaces the root key and the shares. */
  async rekey(): Promise<void> {
    const { rekey } = this.store.barrier;
    const { nonce } = await rekey.start({ shares: 1, threshold: 1, requireVerification: false });
    for (const share of this.shares) {
      const step = await rekey.update({ nonce, share });
      if (step.complete && 'shares' in step) this.shares = step.shares;
    }
  }

  /** Makes this cluster a secondary of the other one. */
  async follow(primary: Site, id: string): Promise<void> {
    await until(() => (primary.node.member?.cluster?.membershipList.members.length ?? 0) > 0);
    await this.replication.enableSecondary(await primary.replication.issueToken({ secondary: id }));
  }

  /** Follows a primary whose keys this cluster does not have, and is unsealed with its shares once it has received the state. */
  async followUnsealed(primary: Site, id: string): Promise<void> {
    await this.follow(primary, id);
    await until(() => this.node.status.state === 'sealed');
    await this.unseal(primary.shares);
  }
}
