// A thread that plays the main thread: a replica in memory, and hosts of gateways. The test's own thread plays the gateways.
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { memoryStore, type Transaction } from '@transitd/storage-fsm';
import { ChangeFeed } from '../../../src/threads/replica/change-feed.ts';
import { ReplicaHost } from '../../../src/threads/replica/replica-host.ts';
import type { NodeMemory } from '../../../src/threads/shared/node-memory.ts';

export type Command =
  | { readonly kind: 'add'; readonly row: number; readonly port: MessagePort }
  | { readonly kind: 'write'; readonly path: string; readonly times: number }
  | { readonly kind: 'hold' }
  | { readonly kind: 'buffers' };

const { memory, lagMax }: { memory: NodeMemory; lagMax: number } = workerData;
const store = memoryStore();
let isHeld = false;
/** Lengths of the buffers of the values in the newest transaction. */
let buffers: number[] = [];
const replica = {
  ...store,
  commit: (transaction: Transaction) => {
    buffers = transaction.writes.map(({ value }) => value?.buffer.byteLength ?? 0);
    return isHeld ? new Promise<never>(() => undefined) : store.commit(transaction);
  },
  get: (path: string) => (isHeld ? new Promise<never>(() => undefined) : store.get(path)),
};
const feed = new ChangeFeed({ replica, memory, lagMax });

parentPort?.on('message', async (command: Command) => {
  parentPort?.postMessage(await answer(command));
});

async function answer(command: Command): Promise<unknown> {
  switch (command.kind) {
    case 'add':
      return new ReplicaHost({ replica, feed, memory, port: command.port, row: command.row }).start;
    case 'write':
      for (let time = 0; time < command.times; time++)
        await store.commit({ conditions: [], writes: [{ path: command.path, value: Buffer.from(String(time)) }] });
      return undefined;
    case 'hold':
      isHeld = true;
      return undefined;
    case 'buffers':
      return buffers;
  }
}
