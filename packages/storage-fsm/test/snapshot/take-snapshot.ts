// Creates a leader in the given directory and lets the node there fetch its snapshot; failpoints may end the process at any step.
import { armFailpoints } from '../../src/failpoint.ts';
import { base, entry, write } from '../log/log-calls.ts';
import { apply, fetched, flush, installed, newNode, openNode, put, serving } from './snapshot-nodes.ts';

const parent = process.argv[2] ?? '';
const leader = await newNode(parent, 'leader', 1);
const entries = Array.from({ length: 31 }, (_, i) => entry(i + 1, 3));
await write(leader.log, { hardState: { term: 3, vote: 1, commit: 31 }, entries });
apply(leader.machine, ...Array.from({ length: 30 }, (_, i) => put(`big/${i}`, 'x'.repeat(100_000))), put('a', 'new'));
await flush(leader.machine);
armFailpoints(process.env['TRANSITD_FAILPOINTS']);
const follower = await openNode(parent, 'follower');
const { snapshots: source } = serving(leader);
const { snapshots } = serving(follower, { link: { open: async (_from, index) => source.stream(2, index) } });
const meta = await fetched(snapshots, base(2, 3));
if (meta === undefined) throw new Error('nothing was fetched');
await installed(snapshots, meta);
await snapshots.close();
await follower.close();
await leader.close();
