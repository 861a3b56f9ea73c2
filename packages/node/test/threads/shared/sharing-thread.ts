// A thread that shares the memory of the node with the test.
import { parentPort, workerData } from 'node:worker_threads';
import type { NodeMemory } from '../../../src/threads/shared/node-memory.ts';
import { SealFlag } from '../../../src/threads/shared/seal-flag.ts';
import { SharedStatus } from '../../../src/threads/shared/shared-status.ts';

export type Task = 'confirm the seal' | 'read the clock' | 'publish statuses';

const memory: NodeMemory = workerData.memory;
const seal = new SealFlag(memory);
const status = new SharedStatus(memory);

parentPort?.on('message', (task: Task) => {
  if (task === 'confirm the seal') seal.confirm(1);
  if (task === 'publish statuses') publishStatuses();
  parentPort?.postMessage(process.hrtime.bigint());
});

/** Publishes statuses whose numbers are all the same. */
function publishStatuses(): void {
  for (let each = 1; each <= 200_000; each++)
    status.publish({
      nodeId: each,
      role: each % 2 === 0 ? 'leader' : 'follower',
      ready: each % 2 === 0,
      term: each,
      leader: each,
      lastIndex: each,
      commitIndex: each,
      appliedIndex: each,
      flushedIndex: each,
      valuesWritten: each,
      diskLow: each % 2 === 0,
    });
}
