import type { SnapshotMeta } from '@transitd/raft-core';
import { expect } from 'chai';
import { StoreError } from '../../src/store/store.ts';
import { base } from '../log/log-calls.ts';
import { rejection } from '../store/store.suite.ts';
import { pair } from './leader-and-follower.ts';
import { apply, fetched, flush, installed, manualTicks, put, serving, shownState } from './snapshot-nodes.ts';

describe('a leader that sends a snapshot', () => {
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
