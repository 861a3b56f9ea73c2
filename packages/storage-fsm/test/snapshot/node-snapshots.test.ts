import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { InvariantViolation, type SnapshotMeta } from '@transitd/raft-core';
import { expect } from 'chai';
import { armFailpoints } from '../../src/failpoint.ts';
import type { NodeSnapshots, NodeSnapshotsOptions } from '../../src/snapshot/node-snapshots.ts';
import { writeSnapshot } from '../../src/snapshot/snapshot-stream.ts';
import { KeyValueMachine } from '../../src/state/state-machine.ts';
import { encodeTransaction } from '../../src/store/codec.ts';
import { recordDigest } from '../../src/store/digest.ts';
import { StoreError } from '../../src/store/store.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { base, entry, write } from '../log/log-calls.ts';
import { rejection } from '../store/store.suite.ts';
import {
  apply,
  fetched,
  flush,
  installed,
  linkTo,
  manualTicks,
  newNode,
  noLink,
  openNode,
  put,
  type SnapshotNode,
  serving,
  shownState,
} from './snapshot-nodes.ts';

const big = 'x'.repeat(100_000);

/** A leader with records on disk and one more only in memory, and a follower with entries of its own. */
async function pair(
  use: (nodes: {
    leader: SnapshotNode;
    follower: SnapshotNode;
    parent: string;
    reopen: () => Promise<SnapshotNode>;
  }) => Promise<void>,
): Promise<void> {
  await inTemporaryDirectory(async (parent) => {
    const leader = await newNode(parent, 'leader', 1);
    let follower = await newNode(parent, 'follower', 2);
    apply(leader.machine, put('a', 'old'), put('gone', '1'), ...Array.from({ length: 12 }, (_, i) => put(`big/${i}`, big)));
    apply(leader.machine, put('a', 'new'), { conditions: [], writes: [{ path: 'gone', value: null }] });
    await flush(leader.machine);
    apply(leader.machine, put('unflushed', '1'));
    await write(follower.log, {
      hardState: { term: 3, vote: 1, commit: 2 },
      entries: [1, 2, 3].map((index) => ({ ...entry(index, 1), data: encodeTransaction(put(`own/${index}`, '1')) })),
    });
    apply(follower.machine, put('own/1', '1'), put('a', 'own'));
    const reopen = async () => {
      await follower.close();
      follower = await openNode(parent, 'follower');
      return follower;
    };
    try {
      await use({ leader, follower, parent, reopen });
    } finally {
      armFailpoints(undefined);
      await follower.close();
      await leader.close();
    }
  });
}

const generations = async ({ directory }: SnapshotNode): Promise<string[]> =>
  (await readdir(directory)).filter((name) => name.startsWith('generation-')).sort();

/** Fetches a snapshot on the follower and installs it. */
async function transferred(
  leader: NodeSnapshots,
  follower: SnapshotNode,
): Promise<{ meta: SnapshotMeta; snapshots: NodeSnapshots }> {
  const { snapshots } = serving(follower, { link: linkTo(leader, 2) });
  const meta = await fetched(snapshots, base(1, 3));
  if (meta === undefined) throw new Error('nothing was fetched');
  await installed(snapshots, meta);
  return { meta, snapshots };
}

describe('snapshots between nodes', function () {
  this.timeout(240_000);

  it("replace state and log with the leader's flushed state; term and vote stay", () =>
    pair(async ({ leader, follower, reopen }) => {
      const { snapshots: source, failed } = serving(leader);
      const notified: unknown[] = [];
      follower.machine.watch('a', (changes) => notified.push(changes));
      const { meta, snapshots } = await transferred(source, follower);
      expect(meta).to.deep.equal(base(leader.machine.flushedIndex, 3));
      const expected = (await shownState(leader.machine)).filter((shown) => !shown.startsWith('unflushed'));
      expect(await shownState(follower.machine)).to.deep.equal(expected);
      expect(notified).to.deep.equal(['everything']);
      expect(follower.machine.flushedIndex).to.equal(meta.index);
      expect(follower.machine.applied.valuesWritten).to.equal(15);
      expect(follower.machine.digestAt(meta.index)).to.equal(leader.machine.digestAt(meta.index)).and.not.equal(undefined);
      expect(follower.machine.digestAt(1), 'of the state before').to.equal(undefined);
      expect(failed).to.deep.equal([]);

      await write(follower.log, { entries: [entry(meta.index + 1, 3)] });
      await snapshots.close();
      const again = await reopen();
      expect(again.log.start).to.deep.include({
        base: meta,
        lastIndex: meta.index + 1,
        hardState: { term: 3, vote: 1, commit: meta.index },
      });
      expect(await shownState(again.machine)).to.deep.equal(expected);
      expect(await generations(again)).to.deep.equal(['generation-2']);
    }));

  it('continue the digest from the installed state: both nodes have the same digest after the next entry', () =>
    pair(async ({ leader, follower }) => {
      const { snapshots } = await transferred(serving(leader).snapshots, follower);
      apply(follower.machine, put('unflushed', '1'), put('a', 'later'));
      apply(leader.machine, put('a', 'later'));
      const { appliedIndex } = leader.machine.applied;
      expect(follower.machine.digestAt(appliedIndex)).to.equal(leader.machine.digestAt(appliedIndex)).and.not.equal(undefined);
      await flush(follower.machine);
      expect(await follower.machine.checkDigest()).to.deep.equal({
        sound: true,
        index: appliedIndex,
        digest: leader.machine.applied.digest,
      });
      await snapshots.close();
    }));

  it('remove the old generation, and can be installed again', () =>
    pair(async ({ leader, follower }) => {
      const { snapshots: source } = serving(leader);
      const first = await transferred(source, follower);
      await first.snapshots.close();
      expect(await generations(follower)).to.deep.equal(['generation-2']);
      await flush(leader.machine);
      const second = await transferred(source, follower);
      await second.snapshots.close();
      expect(second.meta.index).to.equal(first.meta.index + 1);
      expect(await generations(follower)).to.deep.equal(['generation-3']);
      expect(await shownState(follower.machine)).to.deep.equal(await shownState(leader.machine));
    }));

  it('let a range that is being read finish in the old state', () =>
    inTemporaryDirectory(async (parent) => {
      const open = (name: string) => KeyValueMachine.open({ directory: join(parent, name), base: 0 });
      const machine = await open('old');
      apply(machine, ...Array.from({ length: 500 }, (_, i) => put(`a/${i}`, 'old'.repeat(300))));
      await flush(machine);
      const other = await open('new');
      apply(other, ...Array.from({ length: 501 }, () => put('a/1', 'new')));
      await flush(other);
      await other.close();
      const store = await machine.openBeside(join(parent, 'new'));

      const reading = machine.range({ prefix: '' });
      const retired = machine.adopt(store);
      expect(await shownState(machine)).to.deep.equal(['a/1=new@501']);
      expect((await reading).records).to.have.length(500);
      await retired;
      expect(() => machine.adopt(store)).to.throw(InvariantViolation, 'a state is replaced by a newer one');
      await machine.close();
    }));

  it('leave nothing behind when they are discarded or aborted', () =>
    pair(async ({ leader, follower }) => {
      const { snapshots: source, failed } = serving(leader);
      const { snapshots } = serving(follower, { link: linkTo(source, 2) });
      expect(await fetched(snapshots, base(1, 3))).to.not.equal(undefined);
      snapshots.discard();
      await snapshots.close();
      expect(await generations(follower)).to.deep.equal(['generation-1']);
      const { snapshots: other } = serving(follower, { link: linkTo(source, 2) });
      const giveUp = other.fetch({ from: 1, meta: base(1, 3) }, () => expect.fail('it was given up'));
      giveUp();
      await other.close();
      expect(await generations(follower)).to.deep.equal(['generation-1']);
      expect(failed).to.have.length.at.most(1);
    }));

  it('work again after a failed fetch', () =>
    pair(async ({ leader, follower }) => {
      const { snapshots: source } = serving(leader);
      let broken = true;
      const errors: string[] = [];
      const { snapshots } = serving(follower, {
        onFetchFailed: ({ message }) => errors.push(message),
        link: {
          open: async (_from, index) => {
            const stream = source.stream(2, index);
            return broken ? cutAfter(stream, 3) : stream;
          },
        },
      });
      expect(await fetched(snapshots, base(1, 3))).to.equal(undefined);
      expect(errors).to.deep.equal(['the connection broke']);
      expect(await generations(follower)).to.deep.equal(['generation-1']);
      broken = false;
      const meta = await fetched(snapshots, base(1, 3));
      expect(meta?.index).to.equal(leader.machine.flushedIndex);
      await snapshots.close();
    }));
});

async function* cutAfter(stream: AsyncIterable<Uint8Array>, chunks: number): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) {
    if (chunks-- === 0) throw new Error('the connection broke');
    yield chunk;
  }
}

describe('a follower that fetches', function () {
  this.timeout(240_000);

  const attempt = (link: (source: NodeSnapshots) => NodeSnapshotsOptions['link'], offered = base(1, 3)) =>
    new Promise<string>((resolve, reject) => {
      pair(async ({ leader, follower }) => {
        const { snapshots: source } = serving(leader);
        const { snapshots } = serving(follower, { link: link(source), onFetchFailed: ({ message }) => resolve(message) });
        expect(await fetched(snapshots, offered)).to.equal(undefined);
        expect(await generations(follower)).to.deep.equal(['generation-1']);
        await snapshots.close();
      }).catch(reject);
    });

  it('refuses a snapshot older than the offered one', async () => {
    expect(await attempt(() => ({ open: async () => oldStream() }), base(2, 3))).to.match(
      /received a snapshot at index 1, expected index 2 or above/,
    );
  });

  it('refuses a stream with a flipped bit, a lost chunk or an early end', async () => {
    const changed: Record<string, (chunks: Uint8Array[]) => Uint8Array[]> = {
      checksum: ([first, second, ...rest]) => [first, flipped(second), ...rest] as Uint8Array[],
      'wrong checksum': (chunks) => chunks.filter((_, i) => i !== 2),
      truncated: (chunks) => chunks.slice(0, -1),
    };
    for (const [expected, change] of Object.entries(changed)) {
      const message = await attempt((source) => ({
        open: async (_from, index) => {
          const chunks: Uint8Array[] = [];
          for await (const chunk of source.stream(2, index)) chunks.push(chunk);
          return from(change(chunks));
        },
      }));
      expect(message, expected).to.include(expected);
    }
  });

  it('refuses records that do not match the state digest of the stream', async () => {
    const row = { path: 'a', value: Buffer.from('1'), revision: 1 };
    const pages = async function* () {
      yield [row];
    };
    const sent = (digest: bigint) =>
      attempt(() => ({
        open: async () => writeSnapshot({ meta: { appliedIndex: 1, valuesWritten: 1, digest }, pages }, base(1, 3)),
      }));
    expect(await sent(recordDigest(row) + 1n)).to.match(/the snapshot of node 1 is damaged .* do not match the state digest/);
  });

  it('stops before it fills the disk', () =>
    pair(async ({ leader, follower }) => {
      let chunks = 0;
      const errors: string[] = [];
      const { snapshots } = serving(follower, {
        link: linkTo(serving(leader).snapshots, 2),
        diskLow: () => ++chunks > 2,
        onFetchFailed: ({ message }) => errors.push(message),
      });
      expect(await fetched(snapshots, base(1, 3))).to.equal(undefined);
      expect(errors).to.deep.equal(['the data disk is below its reserve']);
      expect(await generations(follower)).to.deep.equal(['generation-1']);
      apply(follower.machine, put('a', 'goes on'));
      await flush(follower.machine);
      await snapshots.close();
    }));

  it('fails when the leader cannot be reached', async () => {
    expect(await attempt(() => noLink)).to.include('no peer is reachable');
  });

  it('fails when nothing arrives for 30 s, and aborts the link', () =>
    pair(async ({ leader, follower }) => {
      const { every, pass, tasks } = manualTicks();
      const { snapshots: source } = serving(leader);
      for (const standsStill of ['while it connects', 'in the middle']) {
        const still = Promise.withResolvers<void>();
        const errors: string[] = [];
        let ended: AbortSignal | undefined;
        const { snapshots } = serving(follower, {
          every,
          onFetchFailed: ({ message }) => errors.push(message),
          link: {
            open: async (_from, index, signal) => {
              ended = signal;
              if (standsStill === 'while it connects') {
                still.resolve();
                return new Promise<never>(() => undefined);
              }
              return stuckAfter(source.stream(2, index), 2, still.resolve);
            },
          },
        });
        const outcome = fetched(snapshots, base(1, 3));
        await still.promise;
        await new Promise(setImmediate);
        pass(29);
        expect(ended?.aborted).to.equal(false);
        pass(1);
        expect(await outcome).to.equal(undefined);
        expect(errors).to.deep.equal(['node 1 sent no snapshot data for 30000 ms']);
        expect(ended?.aborted).to.equal(true);
        expect(await generations(follower)).to.deep.equal(['generation-1']);
        expect(tasks.size, 'no watch is left').to.equal(0);
        await snapshots.close();
      }
    }));
});

const flipped = (bytes: Uint8Array | undefined): Uint8Array => {
  const changed = Buffer.from(bytes ?? []);
  changed.writeUInt8(changed.readUInt8(50) ^ 1, 50);
  return changed;
};

async function* from(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

async function* stuckAfter(stream: AsyncIterable<Uint8Array>, chunks: number, stuck: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) {
    if (chunks-- === 0) {
      stuck();
      await new Promise(() => undefined);
    }
    yield chunk;
  }
}

/** Returns the snapshot of a state at entry 1. */
async function oldStream(): Promise<AsyncIterable<Uint8Array>> {
  const chunks: Uint8Array[] = [];
  await inTemporaryDirectory(async (parent) => {
    const node = await newNode(parent, 'old', 1);
    apply(node.machine, put('a', '1'));
    await flush(node.machine);
    for await (const chunk of serving(node).snapshots.stream(2, 1)) chunks.push(chunk);
    await node.close();
  });
  return from(chunks);
}

describe('a leader that sends a snapshot', function () {
  this.timeout(240_000);

  const codeOf = (attempt: () => unknown): string => {
    try {
      attempt();
    } catch (error) {
      if (error instanceof StoreError) return error.code;
      throw error;
    }
    return 'none';
  };

  it('sends the state of one moment, unaffected by later writes', () =>
    pair(async ({ leader, follower }) => {
      const { snapshots: source } = serving(leader);
      const expected = (await shownState(leader.machine)).filter((shown) => !shown.startsWith('unflushed'));
      const { snapshots } = serving(follower, {
        link: {
          open: async (_from, index) => {
            const stream = source.stream(2, index);
            apply(leader.machine, put('a', 'meanwhile'), put('b', 'meanwhile'));
            await flush(leader.machine);
            return stream;
          },
        },
      });
      const meta = (await fetched(snapshots, base(1, 3))) as SnapshotMeta;
      await installed(snapshots, meta);
      expect(await shownState(follower.machine)).to.deep.equal(expected);
      await snapshots.close();
    }));

  it('counts a transfer as failed when the reader leaves', () =>
    pair(async ({ leader }) => {
      const { snapshots, failed } = serving(leader);
      const stream = snapshots.stream(2, 1);
      const first = await stream.next();
      expect(first.value).to.have.length.below(1000);
      await stream.return?.();
      expect(failed).to.deep.equal([2]);
    }));

  it('refuses too many streams, an index that it has not flushed, and everything after it is closed', () =>
    pair(async ({ leader }) => {
      const { snapshots, failed } = serving(leader, { streamsMax: 2 });
      const [first] = [snapshots.stream(2, 1), snapshots.stream(3, 1)];
      expect(codeOf(() => snapshots.stream(4, 1))).to.equal('busy');
      expect(failed).to.deep.equal([4]);
      for await (const _ of first);
      expect(codeOf(() => snapshots.stream(5, leader.machine.flushedIndex + 1))).to.equal('not_leader');
      expect(failed).to.deep.equal([4, 5]);
      expect(codeOf(() => snapshots.stream(4, leader.machine.flushedIndex))).to.equal('none');
      await snapshots.close();
      expect(codeOf(() => snapshots.stream(2, 1))).to.equal('stopped');
      expect(failed.sort()).to.deep.equal([3, 4, 4, 5]);
    }));

  it("ends a peer's stream when the peer requests another, without reporting a failure", () =>
    pair(async ({ leader }) => {
      const { snapshots, failed } = serving(leader, { streamsMax: 1 });
      const first = snapshots.stream(2, 1);
      await first.next();
      const second = snapshots.stream(2, 1);
      expect(await rejection(first.next())).to.be.instanceOf(StoreError);
      expect((await second.next()).done).to.equal(false);
      expect(failed).to.deep.equal([]);
      await snapshots.close();
    }));

  it('ends a stream when the peer takes nothing for 30 s, whether it has begun or not', () =>
    pair(async ({ leader }) => {
      const { every, pass, tasks } = manualTicks();
      const { snapshots, failed } = serving(leader, { every });
      const [never, slow] = [snapshots.stream(2, 1), snapshots.stream(3, 1)];
      pass(20);
      await slow.next();
      pass(10);
      expect(failed).to.deep.equal([2]);
      pass(20);
      expect(failed).to.deep.equal([2, 3]);
      expect(tasks.size).to.equal(0);
      for (const stream of [never, slow]) expect(await rejection(stream.next())).to.be.instanceOf(StoreError);
    }));
});
