// @live
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseConfig } from '@transitd/configuration';
import { expect } from 'chai';
import { pino } from 'pino';
import { freePort } from '../../../test/cluster/harness/free-port.ts';
import { until } from '../../process/test/until.ts';
import { type LiveEtcd, liveEtcd } from '../../storage-etcd/test/live-etcd.ts';
import { GatewayServices } from '../src/gateway-services.ts';
import { Node } from '../src/node.ts';
import { ReplicaProxy } from '../src/threads/replica/replica-proxy.ts';
import { deadlinesIn } from '../src/threads/shared/deadline.ts';

const hourMs = 3_600_000;

/** A node and the services of one gateway, in one thread. */
for (const storage of ['raft', 'etcd'] as const)
  describe(`the services of a gateway of a node on ${storage}`, () => {
    let etcd: LiveEtcd | undefined;
    let prefixes = 0;
    before(async () => {
      if (storage === 'etcd') etcd = await liveEtcd();
    });
    after(() => etcd?.stop());
    let folder = '';
    let node: Node;
    let gateway: GatewayServices;
    const lost: string[] = [];
    beforeEach(async () => {
      folder = mkdtempSync(join(tmpdir(), 'transitd-gateway-'));
      writeFileSync(join(folder, 'key'), Buffer.alloc(32, 1), { mode: 0o600 });
      const config = parseConfig({
        node_id: 'n1',
        data_dir: join(folder, 'data'),
        listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
        seal: { type: 'static', key_id: 'one', key_file: join(folder, 'key') },
        workers: 1,
        ...(etcd && {
          storage: { type: 'etcd', endpoints: [etcd.endpoint], prefix: `test-${++prefixes}` },
          cluster_addr: `127.0.0.1:${await freePort('127.0.0.1')}`,
        }),
      });
      const onFatal = (error: Error): never => {
        throw error;
      };
      node = await Node.open({ config, log: pino({ level: 'silent' }), onFatal });
      const { memory } = host();
      lost.length = 0;
      const onLost = (reason: string): void => {
        lost.push(reason);
        host().renew(0);
      };
      gateway = new GatewayServices(config, { memory, row: 0 }, onLost);
      const terminate = async (): Promise<never> => {
        throw new Error('the gateway did not confirm the seal');
      };
      host().attach(0, {
        open: (session) => gateway.open(session),
        seal: () => gateway.seal(),
        terminate,
      });
      await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 });
      await until(() => gateway.look() !== undefined);
    });
    afterEach(async () => {
      await node.stop();
      rmSync(folder, { recursive: true });
    });
    const host = () => node.gateways;
    const engineOf = (services: ReturnType<GatewayServices['look']>) => {
      const engine = services?.mounts.engines.get('transit');
      if (engine === undefined) throw new Error('no engine');
      return engine;
    };

    /** Waits until the deadline allows a look: a process that was not scheduled for seconds has missed it. */
    const shown = async () => {
      let services: ReturnType<GatewayServices['look']>;
      await until(() => {
        services = gateway.look();
        return services !== undefined;
      });
      return services;
    };

    it('show each change at the next look, and change nothing themselves', async () => {
      await engineOf(node.services).createKey('k', {});
      for (let version = 2; version < 5; version++) {
        await engineOf(node.services).rotateKey('k');
        const { latestVersion } = await engineOf(await shown()).readKey('k');
        expect(latestVersion).to.equal(version);
      }
      const refused = await engineOf(await shown())
        .rotateKey('k')
        .catch((error: { code?: string }) => error.code);
      expect(refused).to.equal('not_leader');
    });

    it('are not shown once the deadline has passed, or the main thread has ended it', async () => {
      const deadline = deadlinesIn(host().memory).lease;
      host().lease(performance.now() - 1);
      expect(deadline.holds()).to.equal(false);
      expect(gateway.look()).to.equal(undefined);
      host().lease(performance.now() + hourMs);
      expect(gateway.look()).not.to.equal(undefined);
      host().lease(undefined);
      expect(gateway.look()).to.equal(undefined);
    });

    it('are not shown if the deadline passed before the changes were taken, although it is renewed meanwhile', async () => {
      host().lease(performance.now() - 1);
      const { drain } = ReplicaProxy.prototype;
      ReplicaProxy.prototype.drain = function (this: ReplicaProxy) {
        drain.call(this);
        host().lease(performance.now() + hourMs);
      };
      try {
        // A change may have been answered elsewhere between the end of the old deadline and the drain.
        expect(gateway.look()).to.equal(undefined);
        host().lease(performance.now() + hourMs);
        expect(gateway.look()).not.to.equal(undefined);
      } finally {
        ReplicaProxy.prototype.drain = drain;
      }
    });

    it('are not shown after a jump of a clock until a lease was requested later', async () => {
      const { now } = Date;
      host().lease(performance.now() + 100); // shorter than a lease, so it was requested before this moment
      try {
        Date.now = () => now() + hourMs; // the machine was suspended, and the monotonic clock stood still
        expect(gateway.look()).to.equal(undefined);
      } finally {
        Date.now = now;
      }
      expect(await shown()).not.to.equal(undefined);
    });

    it('know the status that health reports while this node is certainly active, and no other one', async () => {
      const status = () => gateway.activeStatus();
      host().lease(performance.now() + hourMs);
      expect(status()).to.deep.equal(node.status);
      expect(status()).to.include({ state: 'active', lastWal: node.member?.replica.status().commitIndex });
      host().lease(performance.now() - 1);
      expect(status(), 'after the lease').to.equal(undefined);
      deadlinesIn(host().memory).read.set(process.hrtime.bigint() + 10n ** 12n);
      expect(gateway.look(), 'a performance standby answers').not.to.equal(undefined);
      expect(status(), 'but does not report its health').to.equal(undefined);
      host().lease(performance.now() + hourMs);
      await node.seal();
      expect(status(), 'sealed').to.equal(undefined);
    });

    it('are gone at once when the node is sealed, and come back in another session', async () => {
      const before = await shown();
      await node.seal();
      expect(gateway.look()).to.equal(undefined);
      expect(() => before?.mounts.under(['transit'])).to.throw(/sealed/);
      host().lease(performance.now() + hourMs);
      expect(gateway.look(), 'a late deadline of a sealed node').to.equal(undefined);
    });

    it('are loaded again when the keyring is rotated', async () => {
      const before = await shown();
      await node.member?.barrier.rotation.rotate();
      await until(() => ![undefined, before].includes(gateway.look()));
      await engineOf(node.services).createKey('under-the-new-key', {});
      expect((await engineOf(await shown()).readKey('under-the-new-key')).latestVersion).to.equal(1);
    });

    it('are loaded again when a gateway missed changes', async () => {
      const before = await shown();
      const { memory } = host();
      host().lease(performance.now() + hourMs);
      Atomics.add(memory.words, 0, 2); // the counter names changes that are not in the port
      expect(gateway.look()).to.equal(undefined);
      expect(lost).to.have.length(1);
      await engineOf(node.services).createKey('later', {});
      await until(() => ![undefined, before].includes(gateway.look()));
      expect((await engineOf(await shown()).readKey('later')).latestVersion).to.equal(1);
    });
  });
