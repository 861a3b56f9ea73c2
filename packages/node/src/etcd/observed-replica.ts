import type { NodeObserver } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';
import type { EtcdReplica } from '@transitd/storage-etcd';
import type { Replica } from '@transitd/storage-fsm';

/** Returns a replica that reports how long each commit took, and the status of its engine. */
export const observedReplica = (replica: EtcdReplica, status: () => DriverStatus, observer: NodeObserver): Replica => ({
  get: (path) => replica.get(path),
  range: (query) => replica.range(query),
  paths: (query) => replica.paths(query),
  watch: (prefix, listener) => replica.watch(prefix, listener),
  fresh: () => replica.fresh(),
  commit: async (transaction) => {
    const startMs = performance.now();
    const result = await replica.commit(transaction);
    observer.committed(performance.now() - startMs);
    return result;
  },
  status: () => ({ ...replica.status(), ...status() }),
});
