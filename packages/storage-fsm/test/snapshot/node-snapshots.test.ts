import { join } from 'node:path';
import { InvariantViolation, type SnapshotMeta } from '@transitd/raft-core';
import { expect } from 'chai';
import type { NodeSnapshots } from '../../src/snapshot/node-snapshots.ts';
import { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { base, entry, write } from '../log/log-calls.ts';
import { generations, pair } from './leader-and-follower.ts';
import { apply, fetched, flush, installed, linkTo, put, type SnapshotNode, serving, shownState } from './snapshot-nodes.ts';

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

describe('snapshots between nodes', () => {
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
      const store = await machine.openReplacement(join(parent, 'new'));

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
      const cancel = other.fetch({ from: 1, meta: base(1, 3) }, () => expect.fail('it was given up'));
      cancel();
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
