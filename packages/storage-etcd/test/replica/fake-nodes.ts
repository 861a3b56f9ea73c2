import { systemClock } from '@transitd/process';
import { type Changes, StoreError } from '@transitd/storage-fsm';
import { EtcdReplica, type EtcdReplicaOptions } from '../../src/replica/etcd-replica.ts';
import { FakeEtcd, type Faults } from '../fake/fake-etcd.ts';
import type { FakeServer } from '../fake/fake-server.ts';

/** No timer ends during a test; only what a test does makes a difference. */
const quiet = { heartbeatMs: 3_600_000, leaseSeconds: 600, retryMs: 1, timeoutMs: 120_000, holdMs: 0 };

export interface FakeNode {
  readonly etcd: FakeEtcd;
  readonly replica: EtcdReplica;
  readonly notified: Changes[];
  readonly faults: Error[];
  close(): Promise<void>;
}

export type FakeNodeOptions = Faults & Partial<Pick<EtcdReplicaOptions, 'clock' | 'holdMs' | 'timeoutMs'>>;

/** Opens a node without faults, and then gives it these. */
export async function fakeNode(
  server: FakeServer,
  nodeId: number,
  { clock = systemClock, holdMs = quiet.holdMs, timeoutMs = quiet.timeoutMs, ...faults }: FakeNodeOptions = {},
): Promise<FakeNode> {
  const etcd = new FakeEtcd(server);
  const reported: Error[] = [];
  const replica = await EtcdReplica.open({
    etcd,
    prefix: 'test',
    nodeId,
    ...quiet,
    ...{ holdMs, timeoutMs, clock },
    onFault: (error) => void reported.push(error),
  });
  const notified: Changes[] = [];
  replica.watch('', (changes) => notified.push(changes));
  etcd.faults = faults;
  const close = async (): Promise<void> => {
    etcd.close();
    await replica.close();
  };
  return { etcd, replica, notified, faults: reported, close };
}

export const put = (path: string, value: string) => ({ conditions: [], writes: [{ path, value: Buffer.from(value) }] });

export const textAt = async ({ replica }: FakeNode, path: string): Promise<string | undefined> => {
  const record = await replica.get(path);
  return record && Buffer.from(record.value).toString();
};

/** Returns what became of a commit: its outcome, or the code of the refusal. */
export const outcomeOf = (commit: Promise<{ readonly outcome: string }>): Promise<string> =>
  commit.then(
    ({ outcome }) => outcome,
    (error: unknown) => {
      if (error instanceof StoreError) return error.code;
      throw error;
    },
  );
