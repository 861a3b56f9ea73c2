import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { asksServer, formatOption } from '../terminal/options.ts';
import type { Format } from '../terminal/output.ts';
import type { Rows } from '../terminal/table.ts';

/** `operator raft snapshot`: the state of the cluster as a file. */
export function snapshotCommands(raft: Command, { asking, local }: Runner): void {
  const snapshot = raft.command('snapshot').description('the state of the cluster as a file; every value in it is encrypted');

  asksServer(snapshot.command('save'))
    .description('write a snapshot to a file, and check it')
    .argument('<file>', 'which must not be there yet')
    .action(
      asking(async ({ client, output }, file: string) => {
        const { saveSnapshot } = await import('../work/snapshot-file.ts');
        output.rows(metaRows(await saveSnapshot(file, () => client.sys.raft.snapshot())));
      }),
    );

  asksServer(snapshot.command('restore'))
    .description('put the cluster back to a snapshot: what was revoked since is valid again')
    .argument('<file>')
    .option('-f, --force', 'also one that was made under other keys; all nodes are sealed then')
    .action(
      asking(async ({ client, output }, file: string, { force }: { force?: true }) => {
        const { streamOf } = await import('../work/snapshot-file.ts');
        const answer = await client.sys.raft.restoreSnapshot(await streamOf(file), { force: force === true });
        output.done(answer, 'The snapshot is restored.');
      }),
    );

  snapshot
    .command('inspect')
    .description('check a snapshot file and show what it says of itself; without a server')
    .argument('<file>')
    .addOption(formatOption())
    .action(
      local(async (file: string, { format }: { format: Format }) => {
        const [{ inspectSnapshot }, { Output }] = await Promise.all([
          import('../work/snapshot-file.ts'),
          import('../terminal/output.ts'),
        ]);
        new Output(format).rows(metaRows(await inspectSnapshot(file)));
      }),
    );
}

const metaRows = (meta: Awaited<ReturnType<typeof import('../work/snapshot-file.ts').inspectSnapshot>>): Rows => [
  ['cluster_id', meta.clusterId],
  ['index', meta.index],
  ['term', meta.term],
  ['created', meta.createdUtc],
  ['version', meta.version],
  ['state_bytes', meta.stateBytes],
];
