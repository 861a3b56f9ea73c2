// @live
import { MessageChannel } from 'node:worker_threads';
import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { ChangeFeed } from '../../../src/threads/replica/change-feed.ts';
import { ReplicaHost } from '../../../src/threads/replica/replica-host.ts';
import { ReplicaProxy } from '../../../src/threads/replica/replica-proxy.ts';
import { newNodeMemory } from '../../../src/threads/shared/node-memory.ts';

describe('the feed of a replica that replaces another one', () => {
  it('publishes numbers after those of the earlier feed, so that a gateway of that one notices its changes', async () => {
    const memory = newNodeMemory(1);
    const [first, second] = [memoryStore(), memoryStore()];
    const write = (store: typeof first) => store.commit({ conditions: [], writes: [{ path: 'a', value: Buffer.from('b') }] });
    const earlier = new ChangeFeed({ replica: first, memory, lagMax: 10 });
    const { port1, port2 } = new MessageChannel();
    const host = new ReplicaHost({ replica: first, feed: earlier, memory, port: port1, row: 0 });
    const proxy = new ReplicaProxy({ port: port2, memory, row: 0, start: host.start, clusterId: 'memory' });
    const seen: unknown[] = [];
    proxy.watch('', (changes) => seen.push(changes));
    for (let time = 0; time < 3; time++) await write(first);
    proxy.drain();
    expect(seen).to.have.length(3);
    earlier.close();
    const later = new ChangeFeed({ replica: second, memory, lagMax: 10 });
    await write(second);
    proxy.drain();
    expect(seen).to.have.length(4);
    expect(seen[3]).to.equal('everything');
    later.close();
    host.close();
    proxy.close();
  });
});
