// @live
import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { GatewayMessage } from '../../../src/threads/coherence/messages.ts';
import { ChangeFeed } from '../../../src/threads/replica/change-feed.ts';
import { ReplicaHost } from '../../../src/threads/replica/replica-host.ts';
import { newNodeMemory } from '../../../src/threads/shared/node-memory.ts';

describe('the main thread’s end of a gateway', () => {
  it('numbers a reply after the request was executed, so that the gateway knows every change that the reply may show', async () => {
    const store = memoryStore();
    const replica = {
      ...store,
      get: async (path: string) => {
        await store.commit({ conditions: [], writes: [{ path, value: Buffer.from('new') }] });
        return store.get(path);
      },
    };
    const memory = newNodeMemory(1);
    const feed = new ChangeFeed({ replica, memory, lagMax: 100 });
    const { port1, port2 } = new MessageChannel();
    const host = new ReplicaHost({ replica, feed, memory, port: port2, row: 0 });
    try {
      const messages: GatewayMessage[] = [];
      port1.on('message', (message: GatewayMessage) => messages.push(message));
      port1.postMessage({ kind: 'get', id: 1, path: 'a' });
      while (!messages.some(({ kind }) => kind === 'reply')) await once(port1, 'message');
      const [change, reply] = messages;
      expect([change?.kind, reply?.kind]).to.deep.equal(['changes', 'reply']);
      expect(reply?.number).to.equal(change?.number);
    } finally {
      host.close();
      port1.close();
    }
  });
});
