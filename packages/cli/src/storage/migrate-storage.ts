import { exitCode } from '@transitd/process';
import type { Command } from 'commander';
import type { LocalWork } from '../runner/local-work.ts';
import type { Runner } from '../runner/runner.ts';
import { formatOption } from '../terminal/options.ts';
import type { Format } from '../terminal/output.ts';

interface MigrateStorageOptions {
  readonly from: string;
  readonly to: string;
  readonly dryRun?: boolean;
  readonly format: Format;
}

/** `migrate-storage`: moves a stopped cluster between its nodes' disks and etcd. */
export function migrateStorageCommand(program: Command, { localAction, work }: Runner): void {
  program
    .command('migrate-storage')
    .description('move a cluster between its own disks (Raft) and etcd, while all nodes are stopped')
    .requiredOption('--from <file>', 'configuration of a node of the cluster as it is')
    .requiredOption('--to <file>', 'configuration of a node of the cluster as it will be; its storage must be empty')
    .option('--dry-run', 'check both sides, and write no record')
    .addOption(formatOption())
    .action(localAction((options: MigrateStorageOptions) => migrateStorage(options, work)));
}

async function migrateStorage({ from, to, dryRun = false, format }: MigrateStorageOptions, work: LocalWork): Promise<number> {
  const [{ Output }, { progressOn }, { storageFault }] = await Promise.all([
    import('../terminal/output.ts'),
    import('../terminal/progress.ts'),
    import('../terminal/storage-fault.ts'),
  ]);
  const output = new Output(format);
  const progress = progressOn();
  const onProgress = (records: number, of: number): void => progress.show(records, of, 'records written');
  try {
    const { records, digest, level, term, index } = await work
      .migrateStorage({ from, to }, { dryRun, onProgress })
      .finally(progress.end);
    output.rows([
      ['records', records],
      ['digest', digest],
      ['feature_level', level],
      ['last_term', term],
      ['last_index', index],
    ]);
    for (const notice of dryRun ? [checked] : moved) output.notice(notice);
    return exitCode.ok;
  } catch (error) {
    return storageFault(error, output);
  }
}

const checked =
  'Both sides can be used; no record was written. Of several data directories, move the one with the highest last_term, and among those ' +
  'the highest last_index.';
const moved = [
  'Moved the cluster, and read all records back.',
  'Never start a node of the former cluster again: both would use the same keys, and revoke tokens only for themselves.',
] as const;
