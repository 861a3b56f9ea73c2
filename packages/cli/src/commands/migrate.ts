import { exitCode, StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Permission } from '../migrate/method.ts';
import type { Runner } from '../runner/runner.ts';
import type { Session, SessionOptions } from '../session/session.ts';
import { promptHidden, secretFrom } from '../terminal/input.ts';
import { collect, serverOptions } from '../terminal/options.ts';

interface MigrateOptions extends SessionOptions {
  readonly from: string;
  readonly fromToken?: string;
  readonly fromCaCert?: string;
  readonly fromNamespace?: string;
  readonly mount?: readonly string[];
  readonly ciphertextPrefix: string;
  readonly state: string;
  readonly dryRun?: true;
  readonly yesSetExportable?: true;
  readonly yesAllowPlaintextBackup?: true;
}

/** `migrate`: moves transit keys, mounts and policies between Vault, OpenBao and transitd. */
export function migrateCommand(program: Command, { serverAction }: Runner): void {
  serverOptions(program.command('migrate'))
    .description('move transit keys, mounts and policies from Vault, OpenBao or transitd to the server at --address')
    .requiredOption('--from <url>', 'address of the source')
    .option(
      '--from-token <token>',
      'token of the source: @file, or - for standard input (default: $TRANSITD_SOURCE_TOKEN, or a prompt)',
    )
    .option('--from-ca-cert <file>', 'PEM file with further authorities to trust')
    .option('--from-namespace <name>', 'namespace at the source')
    .option('--mount <path>', 'transit engine to move; repeatable (default: all)', collect)
    .option('--ciphertext-prefix <prefix>', 'prefix of new ciphertexts; vault keeps them readable at the source', 'vault')
    .option('--state <file>', 'state of the move, to continue it; contains no secret', 'transitd-migrate.json')
    .option('--dry-run', 'change nothing; show what can move, what cannot, and why')
    .option('--yes-set-exportable', 'set exportable on keys at the source without asking; cannot be undone')
    .option('--yes-allow-plaintext-backup', 'set allow_plaintext_backup on keys at the source without asking; cannot be undone')
    .action(serverAction((session, options: MigrateOptions) => migrate(session, options)));
}

async function migrate(session: Session, options: MigrateOptions): Promise<number> {
  const [{ openEnd }, { planMove }, { StateFile }, report] = await Promise.all([
    import('../migrate/end.ts'),
    import('../migrate/plan.ts'),
    import('../migrate/state-file.ts'),
    import('../migrate/report.ts'),
  ]);
  const { output, addresses, namespace, token } = session;
  if (token === undefined) throw new StartError('no token of the target: set TRANSITD_TOKEN or run transitd login');
  const { trustOnly } = await import('../session/trust.ts');
  if (options.fromCaCert !== undefined) trustOnly(options.fromCaCert, ...(session.caFile === undefined ? [] : [session.caFile]));
  const source = await openEnd(
    { addresses: [options.from], token: await sourceToken(options, session), namespace: options.fromNamespace },
    'source',
  );
  const target = await openEnd({ addresses, token, namespace }, 'target');
  if (source.clusterId !== '' && source.clusterId === target.clusterId)
    throw new StartError('the source and the target are the same cluster: set --from and --address');
  // Another namespace has other keys under the same names.
  const idOf = ({ clusterId, address }: typeof source, within: string | undefined): string =>
    `${clusterId || address}${within === undefined ? '' : ` namespace ${within.replace(/^\/+|\/+$/g, '')}`}`;
  const state = StateFile.open(options.state, {
    source: idOf(source, options.fromNamespace),
    target: idOf(target, namespace),
  });
  const granted = new Set<Permission>([
    ...(options.yesSetExportable === true ? (['exportable'] as const) : []),
    ...(options.yesAllowPlaintextBackup === true ? (['allow_plaintext_backup'] as const) : []),
  ]);
  const mounts = options.mount ?? [];
  const plan = await planMove(source, target, { mounts, granted, state });
  if (options.dryRun === true) {
    output.table(
      report.planTitles,
      report.planRows(plan),
      plan.keys.map(({ mount, key: { name, type }, method, present }) => ({ mount, name, type, present, method })),
    );
    showSteps(session, report.cutOver(source, target, plan));
    return report.isComplete(plan) ? exitCode.ok : exitCode.denied;
  }
  const { askForPermissions } = await import('../migrate/ask.ts');
  const agreed = await askForPermissions(plan, granted, output);
  const final = agreed === granted ? plan : await planMove(source, target, { mounts, granted: agreed, state });
  const [{ carryOut }, { progressOn }] = await Promise.all([import('../migrate/move.ts'), import('../terminal/progress.ts')]);
  const progress = progressOn();
  const outcomes = await carryOut(source, target, final, {
    granted: agreed,
    state,
    ciphertextPrefix: options.ciphertextPrefix,
    progress: progress.show,
  }).finally(progress.end);
  output.table(report.outcomeTitles, report.outcomeRows(outcomes), outcomes);
  showSteps(session, report.cutOver(source, target, final));
  const isDone = outcomes.every((outcome) => outcome.state === 'checked') && final.policies !== undefined;
  return isDone ? exitCode.ok : exitCode.denied;
}

function showSteps({ output }: Session, steps: readonly string[]): void {
  output.notice('\nCut over in this order:');
  for (const [at, step] of steps.entries()) output.notice(`${at + 1}. ${step}`);
}

async function sourceToken({ fromToken }: MigrateOptions, { sources }: Session): Promise<string> {
  const fromEnvironment = process.env['TRANSITD_SOURCE_TOKEN'];
  if (fromToken !== undefined) return (await secretFrom(fromToken, 'a token', sources)).trim();
  if (fromEnvironment !== undefined && fromEnvironment !== '') return fromEnvironment;
  const alternative = 'set TRANSITD_SOURCE_TOKEN, or use --from-token @FILE';
  return (await promptHidden('Token of the source (not shown): ', alternative)).trim();
}
