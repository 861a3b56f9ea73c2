import { expect } from 'chai';
import type { NodeSnapshots, NodeSnapshotsOptions } from '../../src/snapshot/node-snapshots.ts';
import { writeSnapshot } from '../../src/snapshot/snapshot-stream.ts';
import { recordDigest } from '../../src/store/digest.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { base } from '../log/log-calls.ts';
import { generations, pair } from './leader-and-follower.ts';
import { apply, fetched, flush, linkTo, manualTicks, newNode, noLink, put, serving } from './snapshot-nodes.ts';

describe('a follower that fetches', () => {
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

  it('refuses a snapshot older than the offered snapshot', async () => {
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
      apply(follower.machine, put('a', 'continues'));
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
