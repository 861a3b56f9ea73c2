import { readdir } from 'node:fs/promises';
import { armFailpoints } from '../../src/failpoint.ts';
import { encodeTransaction } from '../../src/store/codec.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { entry, write } from '../log/log-calls.ts';
import { apply, flush, newNode, openNode, put, type SnapshotNode } from './snapshot-nodes.ts';

export const big = 'x'.repeat(100_000);

/** Runs `use` with a leader that has records on disk and one more only in memory, and a follower with entries of its own. */
export async function pair(
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

export const generations = async ({ directory }: SnapshotNode): Promise<string[]> =>
  (await readdir(directory)).filter((name) => name.startsWith('generation-')).sort();
