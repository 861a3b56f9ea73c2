// @live
import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import type { Changes, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { storeSuite } from '../../../../storage-fsm/test/store/store.suite.ts';
import { ReplicaProxy } from '../../../src/threads/replica/replica-proxy.ts';
import { drainedWord, type NodeMemory, newNodeMemory, word } from '../../../src/threads/shared/node-memory.ts';
import type { Command } from './main-thread.ts';

interface Node {
  readonly memory: NodeMemory;
  readonly worker: Worker;
  ask(command: Command): Promise<unknown>;
  gateway(row: number): Promise<ReplicaProxy>;
  close(): Promise<void>;
}

/** Starts a thread with a replica in memory. */
function startNode({ lagMax = 1000 } = {}): Node {
  const memory = newNodeMemory(2);
  const worker = new Worker(new URL('main-thread.ts', import.meta.url), { workerData: { memory, lagMax } });
  const proxies: ReplicaProxy[] = [];
  const ask = async (command: Command): Promise<unknown> => {
    worker.postMessage(command, command.kind === 'add' ? [command.port] : []);
    const [answer] = await once(worker, 'message');
    return answer;
  };
  return {
    memory,
    worker,
    ask,
    gateway: async (row) => {
      const { port1, port2 } = new MessageChannel();
      const start = Number(await ask({ kind: 'add', row, port: port2 }));
      const proxy = new ReplicaProxy({ port: port1, memory, row, start, clusterId: 'memory' });
      proxies.push(proxy);
      return proxy;
    },
    close: async () => {
      for (const proxy of proxies) proxy.close();
      await worker.terminate();
    },
  };
}

storeSuite('the replica of a gateway in another thread', async () => {
  const node = startNode();
  const replica = await node.gateway(0);
  const close = async (): Promise<void> => {
    await replica.fresh(); // answers the reads that a case has not awaited, before the close refuses them
    await node.close();
  };
  return { replica, close };
});

describe('the replica of a gateway', () => {
  let node: Node;
  afterEach(() => node.close());

  const refusal = (call: Promise<unknown>): Promise<StoreError> =>
    call.then(
      () => expect.fail('the call was not refused'),
      (error) => error,
    );

  /** Waits for published changes without a turn of this thread's event loop. */
  function awaitChanges(count: number): void {
    while (Atomics.load(node.memory.words, word.changes) < count);
  }

  it('reports a change of another thread when it drains, without a turn of its event loop', async () => {
    node = startNode();
    const proxy = await node.gateway(0);
    const seen: Changes[] = [];
    proxy.watch('a/', (changes) => seen.push(changes));
    node.worker.postMessage({ kind: 'write', path: 'a/b', times: 1 });
    awaitChanges(1);
    expect(seen).to.deep.equal([]);
    proxy.drain();
    expect(seen).to.deep.equal([[{ path: 'a/b', revision: 1, deleted: false }]]);
  });

  it('reports a change of another thread in its event loop, without a request', async () => {
    node = startNode();
    const proxy = await node.gateway(0);
    const changed = new Promise<Changes>((resolve) => proxy.watch('', resolve));
    node.worker.postMessage({ kind: 'write', path: 'a', times: 1 });
    expect(await changed).to.deep.equal([{ path: 'a', revision: 1, deleted: false }]);
    expect(Atomics.load(node.memory.words, drainedWord(0)), 'published how far it has drained').to.equal(1);
  });

  it('reports a commit of one gateway to the other before the commit resolves', async () => {
    node = startNode();
    const [first, second] = [await node.gateway(0), await node.gateway(1)];
    const seen: Changes[] = [];
    second.watch('', (changes) => seen.push(changes));
    for (let count = 1; count <= 200; count++) {
      await first.commit({ conditions: [], writes: [{ path: 'a', value: Buffer.from('1') }] });
      second.drain();
      expect(seen).to.have.length(count);
    }
  });

  it('reports `everything` after more changes than may wait for it', async () => {
    node = startNode({ lagMax: 10 });
    const proxy = await node.gateway(0);
    const seen: Changes[] = [];
    proxy.watch('', (changes) => seen.push(changes));
    node.worker.postMessage({ kind: 'write', path: 'a', times: 50 });
    awaitChanges(50);
    proxy.drain();
    expect(seen).to.have.length(11);
    expect(seen.at(-1)).to.equal('everything');
    expect(Buffer.from((await proxy.get('a'))?.value ?? []).toString()).to.equal('49');
  });

  it('begins with the changes after the moment when it was added', async () => {
    node = startNode();
    await node.ask({ kind: 'write', path: 'a', times: 3 });
    const proxy = await node.gateway(0);
    const seen: Changes[] = [];
    proxy.watch('', (changes) => seen.push(changes));
    await proxy.commit({ conditions: [], writes: [{ path: 'b', value: Buffer.from('1') }] });
    expect(seen).to.deep.equal([[{ path: 'b', revision: 4, deleted: false }]]);
  });

  it('has a status that includes its own commits, also without changes', async () => {
    node = startNode();
    const proxy = await node.gateway(0);
    const { index } = await proxy.commit({ conditions: [{ path: 'a', revision: 9 }], writes: [] });
    expect(proxy.status()).to.include({ clusterId: 'memory', nodeId: 1, role: 'leader', ready: true, appliedIndex: index });
  });

  it('sends the bytes of a value without the pool that holds them', async () => {
    node = startNode();
    const proxy = await node.gateway(0);
    const value = Buffer.from('short');
    expect(value.buffer.byteLength, 'bytes of a pool').to.be.above(value.length);
    await proxy.commit({ conditions: [], writes: [{ path: 'a', value }] });
    expect(await node.ask({ kind: 'buffers' })).to.deep.equal([value.length]);
    expect((await proxy.get('a'))?.value.buffer.byteLength).to.equal(value.length);
    expect((await proxy.range({ prefix: '' })).records[0]?.value.buffer.byteLength).to.equal(value.length);
  });

  it('rejects with the error of the main thread', async () => {
    node = startNode();
    const proxy = await node.gateway(0);
    const value = new Uint8Array(64 * 1024 * 1024);
    expect(await refusal(proxy.commit({ conditions: [], writes: [{ path: 'a', value }] }))).to.include({
      name: 'StoreError',
      code: 'too_large',
    });
    expect(await refusal(proxy.range({ prefix: '', limit: 0 }))).to.be.instanceOf(TypeError);
  });

  it('refuses a restore, which the main thread runs', async () => {
    node = startNode();
    const proxy = await node.gateway(0);
    const restore = { kind: 'begin' } as never;
    expect(await refusal(proxy.commit({ restore }))).to.be.instanceOf(TypeError);
    expect(await refusal(proxy.commit({ conditions: [], writes: [], restore }))).to.be.instanceOf(TypeError);
  });

  it('refuses open calls when it closes; the outcome of a commit is unknown then', async () => {
    node = startNode();
    const proxy = await node.gateway(0);
    await node.ask({ kind: 'hold' });
    const calls = [proxy.commit({ conditions: [], writes: [{ path: 'a', value: null }] }), proxy.get('a')].map(refusal);
    proxy.close();
    const [commit, get] = await Promise.all(calls);
    expect(commit).to.include({ code: 'outcome_unknown' });
    expect(get).to.include({ code: 'stopped' });
    expect(await refusal(proxy.fresh()), 'a later call').to.include({ code: 'stopped' });
  });

  it('refuses open calls when the main thread is gone', async () => {
    node = startNode();
    const proxy = await node.gateway(0);
    await node.ask({ kind: 'hold' });
    const call = refusal(proxy.get('a'));
    await node.worker.terminate();
    expect(await call).to.include({ code: 'stopped' });
  });
});
