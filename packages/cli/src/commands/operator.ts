import { exitCode, StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { fieldOption, serverOptions, wholeNumber } from '../terminal/options.ts';
import { shareFrom } from '../terminal/share.ts';
import { featureLevelCommands } from './feature-level.ts';
import { generateRootCommand } from './generate-root.ts';
import { raftCommands } from './raft.ts';
import { recoverCommand } from './recover.ts';
import { rekeyCommand } from './rekey.ts';
import { sealRows } from './status.ts';

interface InitOptions {
  readonly keyShares?: number;
  readonly keyThreshold?: number;
  readonly recoveryShares?: number;
  readonly recoveryThreshold?: number;
  readonly status?: true;
}

/** `operator`: operation of nodes and of the cluster. */
export function operatorCommands(program: Command, runner: Runner): void {
  const { serverAction } = runner;
  const operator = program.command('operator').description('initialize, unseal and operate nodes and clusters');

  serverOptions(operator.command('init'))
    .description('initialize a new cluster; prints the shares and the root token only once')
    .option('--key-shares <count>', 'number of unseal key shares (default: 5)', wholeNumber)
    .option('--key-threshold <count>', 'number of shares required to unseal a node (default: 3)', wholeNumber)
    .option(
      '--recovery-shares <count>',
      'number of recovery key shares, for a seal that unseals automatically (default: 5)',
      wholeNumber,
    )
    .option('--recovery-threshold <count>', 'number of recovery key shares required (default: 3)', wholeNumber)
    .option('--status', 'only report the state: exits 0 if initialized, 2 if not')
    .action(serverAction(initialize));

  serverOptions(operator.command('unseal'))
    .description('submit one share of the unseal key to a sealed node')
    .argument('[share]', '- for standard input or @file, in hex or base64; prompted for if omitted')
    .option('--reset', 'discard the shares submitted so far')
    .option('--migrate', 'authorize the migration from `migrate_seal_from` to `seal`')
    .action(
      serverAction(
        async ({ client, output, sources }, argument: string | undefined, options: { reset?: true; migrate?: true }) => {
          const status =
            options.reset === true
              ? await client.sys.resetUnseal()
              : await client.sys.unseal(await shareFrom(sources, argument), { migrate: options.migrate === true });
          output.warnings(status);
          output.rows(sealRows(status), status);
        },
      ),
    );

  serverOptions(operator.command('seal'))
    .description('seal the node at the address; it discards its keys and stops serving')
    .action(serverAction(async ({ client, output }) => output.done(await client.sys.seal(), 'Sealed the node.')));

  serverOptions(operator.command('step-down'))
    .description('make the active node transfer leadership to another node')
    .action(
      serverAction(async ({ client, output }) => output.done(await client.sys.stepDown(), 'The active node has stepped down.')),
    );

  fieldOption(operator.command('rotate'))
    .description('rotate the encryption key of the barrier; older keys remain available for decryption')
    .action(
      serverAction(async ({ client, output }, options: { field?: string }) => {
        await client.sys.rotate();
        output.answer(await client.sys.keyStatus(), options);
      }),
    );

  rekeyCommand(operator, runner);
  generateRootCommand(operator, runner);
  recoverCommand(operator, runner);
  featureLevelCommands(operator, runner);

  fieldOption(operator.command('key-status'))
    .description('show the term and the usage of the current encryption key of the barrier')
    .action(
      serverAction(async ({ client, output }, options: { field?: string }) => {
        output.answer(await client.sys.keyStatus(), options);
      }),
    );

  serverOptions(operator.command('members'))
    .description('list the cluster nodes known to the active node')
    .action(
      serverAction(async ({ client, output }) => {
        const { nodes } = (await client.sys.haStatus()).data;
        const rows = nodes.map((node) => [
          node.hostname,
          node.api_address,
          node.cluster_address,
          node.active_node,
          node.version,
          node.last_echo,
        ]);
        output.table(['Host', 'API Address', 'Cluster Address', 'Active', 'Version', 'Last Echo'], rows, nodes);
      }),
    );

  raftCommands(operator, runner);
}

async function initialize({ client, output }: Session, options: InitOptions): Promise<number | undefined> {
  const { recovery_seal: autoUnseals, initialized } = await client.sys.sealStatus();
  if (options.status === true) {
    output.rows([['Initialized', initialized]]);
    return initialized ? exitCode.ok : exitCode.denied;
  }
  const isRecovery = autoUnseals || options.recoveryShares !== undefined || options.recoveryThreshold !== undefined;
  if (isRecovery && (options.keyShares !== undefined || options.keyThreshold !== undefined))
    throw new StartError('this seal unseals automatically: use --recovery-shares and --recovery-threshold');
  const shares = (isRecovery ? options.recoveryShares : options.keyShares) ?? 5;
  const threshold = (isRecovery ? options.recoveryThreshold : options.keyThreshold) ?? Math.min(3, shares);
  const response = await client.sys.initialize(
    isRecovery
      ? { recovery_shares: shares, recovery_threshold: threshold }
      : { secret_shares: shares, secret_threshold: threshold },
  );
  const [hex, base64] = isRecovery
    ? [response.recovery_keys ?? [], response.recovery_keys_base64 ?? []]
    : [response.keys, response.keys_base64];
  if (output.format === 'json') {
    const none: readonly string[] = [];
    output.json({
      unseal_keys_b64: isRecovery ? none : base64,
      unseal_keys_hex: isRecovery ? none : hex,
      unseal_shares: isRecovery ? 0 : shares,
      unseal_threshold: isRecovery ? 0 : threshold,
      recovery_keys_b64: isRecovery ? base64 : none,
      recovery_keys_hex: isRecovery ? hex : none,
      recovery_keys_shares: isRecovery ? shares : 0,
      recovery_keys_threshold: isRecovery ? threshold : 0,
      root_token: response.root_token,
    });
    return undefined;
  }
  for (const [index, share] of base64.entries()) output.line(`${isRecovery ? 'Recovery' : 'Unseal'} Key ${index + 1}: ${share}`);
  output.line(`\nInitial Root Token: ${response.root_token}\n`);
  output.line(
    isRecovery
      ? `Any ${threshold} of the ${shares} recovery keys can generate a new root token.`
      : `Each start of a node requires ${threshold} of the ${shares} unseal keys; without them the data is lost.`,
  );
  output.line('They are printed only once: store each with a different holder.');
  return undefined;
}
