import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '@transitd/process';
import { sessionLimits } from '@transitd/replication';
import { PrimaryLink } from '../../packages/cluster/src/replication/primary-link.ts';
import { MachineCluster } from '../../packages/cluster/test/replication/machine-cluster.ts';
import { TestSite } from '../../packages/cluster/test/replication/replication-fixtures.ts';
import { plainTlsSeconds } from './plain-tls.ts';

export interface CatchUpOptions {
  /** Values of the whole state, and then of the entries. */
  readonly megabytes: number;
  readonly valueBytes: number;
}

/** Payload bytes per second, in MB (10^6 bytes). */
export interface CatchUp {
  readonly stateMBs: number;
  readonly entriesMBs: number;
  /** The time in which the primary writes and applies the same entries: a secondary has to do at least this work. */
  readonly localMBs: number;
  /** The same number of bytes over a TLS connection that does nothing else. */
  readonly plainTlsMBs: number;
}

/**
 * Measures how fast a secondary catches up over the cluster port, on the loopback interface and with both ends in this process: first by
 * the whole state, then by the entries that were written while it was disconnected.
 */
export async function measureCatchUp({ megabytes, valueBytes }: CatchUpOptions): Promise<CatchUp> {
  const folder = await mkdtemp(join(tmpdir(), 'transitd-bench-'));
  const primary = await MachineCluster.open(folder, 'primary', 'establish');
  const secondary = await MachineCluster.open(folder, 'secondary', 'attach');
  const { heartbeatMs } = sessionLimits;
  const site = await TestSite.start({ primary, limits: { heartbeatMs } });
  const bytes = megabytes * 10 ** 6;
  try {
    const credential = await site.register('bench');
    const catchUp = async (): Promise<number> => {
      const startMs = performance.now();
      const link = new PrimaryLink({
        ...{ cluster: secondary, credentials: { present: credential }, clock: systemClock },
        log: {
          info: () => undefined,
          error: ({ reason }: { reason: string }) => {
            throw new Error(reason);
          },
        },
      });
      while (secondary.position() !== primary.position()) await pause(1);
      const seconds = (performance.now() - startMs) / 1000;
      link.close();
      return megabytes / seconds;
    };
    await fill(primary, { bytes, valueBytes, prefix: 'transit/state' });
    const stateMBs = await catchUp();
    const fillMs = performance.now();
    await fill(primary, { bytes, valueBytes, prefix: 'transit/entries' });
    const localMBs = (1000 * megabytes) / (performance.now() - fillMs);
    const entriesMBs = await catchUp();
    const { identity } = await site.cluster.node(9);
    return { stateMBs, entriesMBs, localMBs, plainTlsMBs: megabytes / (await plainTlsSeconds(bytes, identity)) };
  } finally {
    await site.stop();
    await Promise.all([primary.close(), secondary.close()]);
    await rm(folder, { recursive: true, force: true });
  }
}

/** Writes random values; a hundred of them share an entry, so that the filling takes little of the time. */
async function fill(
  cluster: MachineCluster,
  { bytes, valueBytes, prefix }: { readonly bytes: number; readonly valueBytes: number; readonly prefix: string },
): Promise<void> {
  const values = Math.ceil(bytes / valueBytes);
  for (let at = 0; at < values; at += 100) {
    const count = Math.min(100, values - at);
    const writes = Array.from({ length: count }, (_, number) => ({
      path: `${prefix}/${at + number}`,
      value: randomBytes(valueBytes),
    }));
    await cluster.commit({ conditions: [], writes });
  }
  await cluster.flush();
}
