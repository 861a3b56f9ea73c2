import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@transitd/process';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { PrimaryLink } from '../../src/port/primary-link.ts';
import { MachineCluster } from './machine-cluster.ts';
import { TestSite, testLimits } from './replication-fixtures.ts';

describe('a secondary with a state machine', () => {
  let folder: string;
  let primary: MachineCluster;
  let secondary: MachineCluster;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'transitd-'));
    primary = await MachineCluster.open(folder, 'primary', 'establish');
    secondary = await MachineCluster.open(folder, 'secondary', 'attach');
  });
  after(async () => {
    await Promise.all([primary.close(), secondary.close()]);
    await rm(folder, { recursive: true, force: true });
  });

  const write = (name: string, bytes = 3_000) =>
    primary.commit({ conditions: [], writes: [{ path: `transit/${name}`, value: Buffer.alloc(bytes, name) }] });

  it('has the records, the revisions and the digest of its primary, by whole state and by entries', async () => {
    for (let at = 0; at < 300; at++) await write(`state-${at}`);
    await primary.flush();
    const site = await TestSite.start({ primary });
    const credential = await site.register();
    const link = new PrimaryLink({
      ...{ cluster: secondary, credentials: { present: credential }, clock: systemClock },
      log: {
        info: () => undefined,
        error: ({ reason }: { reason: string }) => {
          throw new Error(reason);
        },
      },
      limits: testLimits,
    });
    try {
      await until(() => secondary.position() === primary.position());
      for (let at = 0; at < 100; at++) await write(`state-${at}`, 500);
      await primary.commit({ conditions: [], writes: [{ path: 'transit/state-7', value: null }] });
      site.ports[0]?.progress();
      await until(() => secondary.position() === primary.position());
      await Promise.all([primary.machine.measureScope(), secondary.machine.measureScope()]);
      const [one, other] = [primary, secondary].map(({ machine }) => machine.scopeDigestAt(primary.position()));
      expect(one).to.be.a('bigint');
      expect(other).to.equal(one);
      expect(secondary.machine.getSync('transit/state-7')).to.equal(undefined);
      expect(secondary.machine.getSync('transit/state-8')).to.deep.equal(primary.machine.getSync('transit/state-8'));
    } finally {
      link.close();
      await site.stop();
    }
  });
});
