import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Point } from './measures.ts';

/** Reads as many keys as are given into the copy of a node on etcd, without a node and without etcd: each in a process of its own. */
export async function copiesCurve(
  keys: readonly number[],
): Promise<{ readonly size: string; readonly points: readonly Point[] }> {
  const points: Point[] = [];
  for (const size of keys) {
    const execArgv = ['--expose-gc', '--max-semi-space-size=8'];
    const child = fork(join(import.meta.dirname, 'copy-process.ts'), [String(size)], { execArgv });
    const [measured] = await once(child, 'message');
    points.push({ size, ...measured });
  }
  return { size: 'keys, copy alone', points };
}
