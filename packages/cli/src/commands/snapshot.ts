import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { formatOf } from '../session/environment.ts';
import { formatOption, serverOptions } from '../terminal/options.ts';
import type { Format } from '../terminal/output.ts';
import type { Rows } from '../terminal/table.ts';

/** `operator raft snapshot`: snapshots of the cluster state. */
export function snapshotCommands(raft: Command, { serverAction, localAction }: Runner): void {
  const snapshot = raft
    .command('snapshot')
    .description('save, restore and inspect snapshots of the cluster state; their values are encrypted');

  serverOptions(snapshot.command('save'))
    .description('save a snapshot to a file and verify its checksums')
    .argument('<file>', 'file to create; must not exist')
    .action(
      serverAction(async ({ client, output }, file: string) => {
        const [{ saveSnapshot }, { progressOn }] = await Promise.all([
          import('../local/snapshot-file.ts'),
          import('../terminal/progress.ts'),
        ]);
        const progress = progressOn();
        // The size is not known before the end.
        const received = (bytes: number): void => progress.show(mebibytes(bytes), 0, 'MiB received');
        output.rows(metaRows(await saveSnapshot(file, () => client.sys.raft.snapshot(), received).finally(progress.end)));
      }),
    );

  serverOptions(snapshot.command('restore'))
    .description('restore the cluster from a snapshot; tokens revoked since then are valid again')
    .argument('<file>', 'snapshot file')
    .option('-f, --force', 'also restore a snapshot encrypted with other keys; this seals all nodes')
    .action(
      serverAction(async ({ client, output }, file: string, { force }: { force?: true }) => {
        const [{ streamOf }, { progressOn }] = await Promise.all([
          import('../local/snapshot-file.ts'),
          import('../terminal/progress.ts'),
        ]);
        const progress = progressOn();
        const sent = (bytes: number, of: number): void =>
          progress.show(bytes, of, bytes < of ? `${mebibytes(bytes)} MiB sent` : 'sent; the cluster restores it');
        const answer = await client.sys.raft
          .restoreSnapshot(await streamOf(file, sent), { force: force === true })
          .finally(progress.end);
        output.done(answer, 'Restored the snapshot.');
      }),
    );

  snapshot
    .command('inspect')
    .description('verify a snapshot file and show its metadata, without a server')
    .argument('<file>', 'snapshot file')
    .addOption(formatOption())
    .action(
      localAction(async (file: string, { format }: { format?: Format }) => {
        const [{ inspectSnapshot }, { Output }] = await Promise.all([
          import('../local/snapshot-file.ts'),
          import('../terminal/output.ts'),
        ]);
        new Output(formatOf(format, process.env)).rows(metaRows(await inspectSnapshot(file)));
      }),
    );
}

const mebibytes = (bytes: number): number => Math.floor(bytes / 2 ** 20);

const metaRows = (meta: Awaited<ReturnType<typeof import('../local/snapshot-file.ts').inspectSnapshot>>): Rows => [
  ['cluster_id', meta.clusterId],
  ['index', meta.index],
  ['term', meta.term],
  ['created', meta.createdUtc],
  ['version', meta.version],
  ['feature_level', meta.featureLevel],
  ['state_bytes', meta.stateBytes],
];
