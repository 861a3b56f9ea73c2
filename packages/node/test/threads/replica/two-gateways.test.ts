// @live
import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { ChangeFeed } from '../../../src/threads/replica/change-feed.ts';
import { ReplicaHost } from '../../../src/threads/replica/replica-host.ts';
import { newNodeMemory } from '../../../src/threads/shared/node-memory.ts';
import type { GatewayResult, GatewayWork } from './hammering-gateway.ts';

/** Lets two gateway threads change and read the same records. This thread is the main thread. */
async function hammer({ lagMax, rounds }: { lagMax: number; rounds: number }): Promise<GatewayResult[]> {
  const [memory, replica] = [newNodeMemory(2), memoryStore()];
  const feed = new ChangeFeed({ replica, memory, lagMax });
  const answered = new Int32Array(new SharedArrayBuffer(4 * 3));
  const gateways = [0, 1].map((row) => {
    const { port1, port2 } = new MessageChannel();
    const host = new ReplicaHost({ replica, feed, memory, port: port1, row });
    const work: GatewayWork = { memory, port: port2, row, start: host.start, answered, rounds };
    const worker = new Worker(new URL('hammering-gateway.ts', import.meta.url), { workerData: work, transferList: [port2] });
    return { host, worker };
  });
  const results = await Promise.all(
    gateways.map(async ({ worker }): Promise<GatewayResult> => (await once(worker, 'message'))[0]),
  );
  for (const { host } of gateways) host.close();
  await Promise.all(gateways.map(({ worker }) => worker.terminate()));
  feed.close();
  return results;
}

describe('two gateway threads that change and read the same records', () => {
  for (const { lagMax, because } of [
    { lagMax: 1000, because: 'when every change is posted' },
    { lagMax: 0, because: 'when no change is posted, as to a gateway that lags' },
  ])
    it(`never miss a change that was answered, ${because}`, async () => {
      const results = await hammer({ lagMax, rounds: 3000 });
      for (const { missed, commits, dropped } of results) {
        expect(missed).to.equal(0);
        expect(commits).to.be.above(0);
        expect(dropped > 0).to.equal(lagMax === 0);
      }
    });
});
