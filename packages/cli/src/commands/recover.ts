import { exitCode, StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { LocalWork, Recovery } from '../runner/local-work.ts';
import type { Runner } from '../runner/runner.ts';
import { formatOption } from '../terminal/options.ts';
import type { Format } from '../terminal/output.ts';

interface RecoverOptions {
  readonly dataDir: string;
  readonly out: string;
  readonly withoutLog?: true;
  readonly format: Format;
}

/** `operator recover`: what is left of a cluster that lost the majority of its disks. */
export function recoverCommand(operator: Command, { local, work }: Runner): void {
  operator
    .command('recover')
    .description(
      'make a snapshot of all that the disk of a stopped node holds: for when a majority of the disks is gone for good',
    )
    .requiredOption('--data-dir <dir>', 'of the node; it can be started as ever afterwards')
    .requiredOption('--out <file>', 'the snapshot, which must not be there yet')
    .option('--without-log', 'take the records as they were last flushed: for a log that is damaged')
    .addOption(formatOption())
    .action(local((options: RecoverOptions) => recover(options, work)));
}

async function recover({ dataDir, out, withoutLog, format }: RecoverOptions, work: LocalWork): Promise<number> {
  const [{ requireAbsent, saveSnapshot }, { LogUnreadable, StorageDamaged, StorageFailed }, { Output }] = await Promise.all([
    import('../work/snapshot-file.ts'),
    import('@transitd/storage-fsm'),
    import('../terminal/output.ts'),
  ]);
  const output = new Output(format);
  requireAbsent(out);
  try {
    await work.recover(dataDir, { withoutLog: withoutLog === true }, async (recovery) => {
      await saveSnapshot(out, async () => recovery.archive());
      output.rows(rowsOf(recovery));
      for (const remark of remarksOn(recovery, out)) output.remark(remark);
    });
    return exitCode.ok;
  } catch (error) {
    if (error instanceof StartError || !(error instanceof StorageDamaged || error instanceof StorageFailed)) throw error;
    const hint = error instanceof LogUnreadable ? ' With --without-log its records are taken as they were last flushed.' : '';
    output.remark(`transitd: ${error.message}${hint}`);
    return exitCode.storage;
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
    // With the log, nothing is known to be missing.
    ...(state.conf === undefined ? ([['known_missing', state.storedIndex - state.index]] as const) : []),
    ['records', records],
  ] as const;

/** What an operator has to know before this snapshot becomes the state of a cluster. */
function remarksOn({ state, isMember, isOvertaken }: Recovery, file: string): readonly string[] {
  const { index, commitIndex, storedIndex, conf } = state;
  return [
    ...(index > commitIndex
      ? [
          `Entries ${commitIndex + 1} to ${index} are taken, though this disk does not know them to be committed: perhaps they were never acknowledged.`,
        ]
      : []),
    ...(conf === undefined
      ? [
          `The log was left out, and all that it held above entry ${index} is missing: this disk is known to have held entries up to ${storedIndex}, of which those up to ${commitIndex} were committed.`,
        ]
      : []),
    ...(isMember ? [] : ['This node was no member any more: the others went on without it.']),
    ...(isOvertaken ? ['This node was told that its disk was set back, or is a copy: another disk may hold more.'] : []),
    `Writes that other nodes acknowledged after entry ${index} are missing. Do this on every disk that is left, and go on with the highest last_term, among those with the highest last_index.`,
    `Then found a new cluster with the same seal, and there: transitd operator raft snapshot restore --force ${file}`,
  ];
}
