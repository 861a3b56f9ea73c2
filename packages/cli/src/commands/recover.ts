import { exitCode } from '@transitd/process';
import type { Command } from 'commander';
import type { LocalWork, Recovery } from '../runner/local-work.ts';
import type { Runner } from '../runner/runner.ts';
import { formatOf } from '../session/environment.ts';
import { formatOption } from '../terminal/options.ts';
import type { Format } from '../terminal/output.ts';

interface RecoverOptions {
  readonly dataDir: string;
  readonly out: string;
  readonly withoutLog?: true;
  readonly format?: Format;
}

/** `operator recover`: makes a snapshot from one data directory when the cluster has lost a majority of its disks. */
export function recoverCommand(operator: Command, { localAction, work }: Runner): void {
  operator
    .command('recover')
    .description('create a snapshot from the data directory of a stopped node, after permanent loss of a majority')
    .requiredOption('--data-dir <dir>', 'data directory of the stopped node; the node can still be started afterwards')
    .requiredOption('--out <file>', 'snapshot file to create; must not exist')
    .option('--without-log', 'use only the flushed records: for a damaged log')
    .addOption(formatOption())
    .action(localAction((options: RecoverOptions) => recover(options, work)));
}

async function recover({ dataDir, out, withoutLog, format }: RecoverOptions, work: LocalWork): Promise<number> {
  const [{ requireAbsent, saveSnapshot }, { LogUnreadable }, { Output }, { storageFault }] = await Promise.all([
    import('../local/snapshot-file.ts'),
    import('@transitd/storage-fsm'),
    import('../terminal/output.ts'),
    import('../terminal/storage-fault.ts'),
  ]);
  const output = new Output(formatOf(format, process.env));
  requireAbsent(out);
  try {
    await work.recover(dataDir, { withoutLog: withoutLog === true }, async (recovery) => {
      await saveSnapshot(out, async () => recovery.archive());
      output.rows(rowsOf(recovery));
      for (const notice of noticesFor(recovery, out)) output.notice(notice);
    });
    return exitCode.ok;
  } catch (error) {
    const hint = error instanceof LogUnreadable ? ' Use --without-log to recover the records as of the last flush.' : '';
    return storageFault(error, output, hint);
  }
}

const rowsOf = ({ state, name, records }: Recovery) =>
  [
    ['node', name ?? null],
    ['node_id', state.nodeId],
    ['cluster_id', state.clusterId],
    ['last_term', state.term ?? null],
    ['last_index', state.index],
    ['commit_index', state.commitIndex],
    ['beyond_commit', Math.max(0, state.index - state.commitIndex)],
    // Nothing is known to be missing if the log was read.
    ...(state.conf === undefined ? ([['known_missing', state.storedIndex - state.index]] as const) : []),
    ['records', records],
  ] as const;

/** Returns what an operator must know before restoring this snapshot. */
function noticesFor({ state, isMember, isOvertaken }: Recovery, file: string): readonly string[] {
  const { index, commitIndex, storedIndex, conf, unreadableReplication } = state;
  return [
    ...(index > commitIndex
      ? [
          `The snapshot includes entries ${commitIndex + 1} to ${index}, which may be uncommitted: they may never have been acknowledged.`,
        ]
      : []),
    ...(conf === undefined
      ? [
          `The log was not read, so all entries after ${index} are missing.`,
          `This disk is known to have held entries up to ${storedIndex}, committed up to ${commitIndex}.`,
        ]
      : []),
    ...(unreadableReplication === undefined
      ? []
      : [
          `${unreadableReplication}: the snapshot is that of a cluster in no replication set.`,
          'End the set on its other clusters too, and begin a new one after the restore.',
        ]),
    ...(isMember ? [] : ['This node had been removed from the cluster: the other members continued without it.']),
    ...(isOvertaken
      ? ['Another node reported that this disk was rolled back or copied: another disk may hold newer entries.']
      : []),
    `Writes that other nodes acknowledged after entry ${index} are missing.`,
    'Run this on every remaining disk. Use the snapshot with the highest last_term, and among those the highest last_index.',
    `Then initialize a new cluster with the same seal and run: transitd operator raft snapshot restore --force ${file}`,
  ];
}
