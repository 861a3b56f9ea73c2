import { exitCode, StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { End } from '../migrate/end.ts';
import type { Permission } from '../migrate/method.ts';
import type { KnownKeys, MoveState } from '../migrate/state-file.ts';
import type { Runner } from '../runner/runner.ts';
import type { Session, SessionOptions } from '../session/session.ts';
import { promptHidden, secretFrom } from '../terminal/input.ts';
import { collect, serverOptions } from '../terminal/options.ts';

interface MigrateOptions extends SessionOptions {
  readonly from: string;
  readonly fromToken?: string;
  readonly fromCaCert?: string;
  readonly fromClientCert?: string;
  readonly fromClientKey?: string;
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
    .option('--from-client-cert <file>', 'PEM file of the certificate that the source asks for')
    .option('--from-client-key <file>', 'PEM file of the key of --from-client-cert')
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
  const [{ openEnd }, { StateFile }] = await Promise.all([import('../migrate/end.ts'), import('../migrate/state-file.ts')]);
  const { addresses, namespace, token } = session;
  if (token === undefined) throw new StartError('no token of the target: set TRANSITD_TOKEN or run transitd login');
  const [{ trustOnly }, { fetchWith }] = await Promise.all([import('../session/trust.ts'), import('../session/tls-fetch.ts')]);
  if (options.fromCaCert !== undefined) trustOnly(options.fromCaCert, ...session.caFiles);
  const fromSource = fetchWith({ certFile: options.fromClientCert, keyFile: options.fromClientKey, skipVerify: false });
  const fromToken = await sourceToken(options, session);
  const source = await openEnd(
    { addresses: [options.from], token: fromToken, namespace: options.fromNamespace, fetch: fromSource },
    'source',
  );
  const target = await openEnd({ addresses, token, namespace, fetch: session.fetch }, 'target');
  if (source.clusterId !== '' && source.clusterId === target.clusterId)
    throw new StartError('the source and the target are the same cluster: set --from and --address');
  // Another namespace has other keys under the same names.
  const idOf = ({ clusterId, address }: typeof source, within: string | undefined): string =>
    `${clusterId || address}${within === undefined ? '' : ` namespace ${within.replace(/^\/+|\/+$/g, '')}`}`;
  const ends = { source: idOf(source, options.fromNamespace), target: idOf(target, namespace) };
  const clusters = { source, target };
  if (options.dryRun === true) return showPlan(session, options, clusters, StateFile.read(options.state, ends));
  const state = await StateFile.open(options.state, ends);
  try {
    return await move(session, options, clusters, state);
  } finally {
    await state.close();
  }
}

/** The two clusters of a migration. */
interface Clusters {
  readonly source: End;
  readonly target: End;
}

/** Prints the plan, and returns whether everything can move as an exit code. */
async function showPlan(
  session: Session,
  options: MigrateOptions,
  { source, target }: Clusters,
  state: KnownKeys,
): Promise<number> {
  const [{ planMove }, report] = await Promise.all([import('../migrate/plan.ts'), import('../migrate/report.ts')]);
  const plan = await planMove(source, target, { mounts: options.mount ?? [], granted: grantedIn(options), state });
  session.output.table(
    report.planTitles,
    report.planRows(plan),
    plan.keys.map(({ mount, key: { name, type }, method, present }) => ({ mount, name, type, present, method })),
  );
  showSteps(session, report.cutOver(source, target, plan));
  return report.isComplete(plan) ? exitCode.ok : exitCode.denied;
}

/** Moves and checks everything, and returns whether that succeeded as an exit code. */
async function move(session: Session, options: MigrateOptions, { source, target }: Clusters, state: MoveState): Promise<number> {
  const [{ planMove }, { askForPermissions }, { carryOut }, { progressOn }, report] = await Promise.all([
    import('../migrate/plan.ts'),
    import('../migrate/ask.ts'),
    import('../migrate/move.ts'),
    import('../terminal/progress.ts'),
    import('../migrate/report.ts'),
  ]);
  const { output } = session;
  const [mounts, granted] = [options.mount ?? [], grantedIn(options)];
  const plan = await planMove(source, target, { mounts, granted, state });
  const agreed = await askForPermissions(plan, granted, output);
  const final = agreed === granted ? plan : await planMove(source, target, { mounts, granted: agreed, state });
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

const grantedIn = ({ yesSetExportable, yesAllowPlaintextBackup }: MigrateOptions): ReadonlySet<Permission> =>
  new Set<Permission>([
    ...(yesSetExportable === true ? (['exportable'] as const) : []),
    ...(yesAllowPlaintextBackup === true ? (['allow_plaintext_backup'] as const) : []),
  ]);

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
