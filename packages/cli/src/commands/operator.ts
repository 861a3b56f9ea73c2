import { exitCode, StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { asksServer, showsField, wholeNumber } from '../terminal/options.ts';
import { shareFrom } from '../terminal/share.ts';
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

/** `operator`: what the people do who run the service. */
export function operatorCommands(program: Command, runner: Runner): void {
  const { asking } = runner;
  const operator = program.command('operator').description('running the service');

  asksServer(operator.command('init'))
    .description('make the keys of a new cluster, and show them this once')
    .option('--key-shares <count>', 'into how many shares the unseal key is split, 5 unless given', wholeNumber)
    .option('--key-threshold <count>', 'how many of them unseal a node, 3 unless given', wholeNumber)
    .option('--recovery-shares <count>', 'with a seal that unseals by itself: number of recovery shares', wholeNumber)
    .option('--recovery-threshold <count>', '… and how many of them are needed', wholeNumber)
    .option('--status', 'only tell: exit 0 when it is initialised, 2 when it is not')
    .action(asking(initialize));

  asksServer(operator.command('unseal'))
    .description('give a sealed node one share of the unseal key')
    .argument('[share]', '- for standard input or @file, hex or base64; asked for, unseen, unless given')
    .option('--reset', 'forget the shares that were given so far')
    .action(
      asking(async ({ client, output, sources }, given: string | undefined, { reset }: { reset?: true }) => {
        const status = reset === true ? await client.sys.resetUnseal() : await client.sys.unseal(await shareFrom(sources, given));
        output.warnings(status);
        output.rows(sealRows(status), status);
      }),
    );

  asksServer(operator.command('seal'))
    .description('seal the node at the address: it forgets its keys and serves nothing')
    .action(asking(async ({ client, output }) => output.done(await client.sys.seal(), 'The node is sealed.')));

  asksServer(operator.command('step-down'))
    .description('let another node become the active one')
    .action(asking(async ({ client, output }) => output.done(await client.sys.stepDown(), 'The active node has stepped down.')));

  showsField(operator.command('rotate'))
    .description('encrypt from now on under a new key; old ones stay for reading')
    .action(
      asking(async ({ client, output }, options: { field?: string }) => {
        await client.sys.rotate();
        output.answer(await client.sys.keyStatus(), options);
      }),
    );

  rekeyCommand(operator, runner);
  generateRootCommand(operator, runner);
  recoverCommand(operator, runner);

  showsField(operator.command('key-status'))
    .description('show the term and the use of the key that values are encrypted under')
    .action(
      asking(async ({ client, output }, options: { field?: string }) => {
        output.answer(await client.sys.keyStatus(), options);
      }),
    );

  asksServer(operator.command('members'))
    .description('show the nodes as the active one has heard of them')
    .action(
      asking(async ({ client, output }) => {
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
  const { recovery_seal: unsealsItself, initialized } = await client.sys.sealStatus();
  if (options.status === true) {
    output.rows([['Initialized', initialized]]);
    return initialized ? exitCode.ok : exitCode.denied;
  }
  const isRecovery = unsealsItself || options.recoveryShares !== undefined || options.recoveryThreshold !== undefined;
  if (isRecovery && (options.keyShares !== undefined || options.keyThreshold !== undefined))
    throw new StartError('the seal unseals by itself: its shares are --recovery-shares and --recovery-threshold');
  const shares = (isRecovery ? options.recoveryShares : options.keyShares) ?? 5;
  const threshold = (isRecovery ? options.recoveryThreshold : options.keyThreshold) ?? Math.min(3, shares);
  const made = await client.sys.initialize(
    isRecovery
      ? { recovery_shares: shares, recovery_threshold: threshold }
      : { secret_shares: shares, secret_threshold: threshold },
  );
  const [hex, base64] = isRecovery ? [made.recovery_keys ?? [], made.recovery_keys_base64 ?? []] : [made.keys, made.keys_base64];
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
      root_token: made.root_token,
    });
    return undefined;
  }
  for (const [index, share] of base64.entries()) output.line(`${isRecovery ? 'Recovery' : 'Unseal'} Key ${index + 1}: ${share}`);
  output.line(`\nInitial Root Token: ${made.root_token}\n`);
  output.line(
    isRecovery
      ? `${threshold} of the ${shares} recovery keys can make a new root token. They are shown this once: keep them apart, each with its holder.`
      : `Each start of a node needs ${threshold} of the ${shares} keys. They are shown this once, and without them the data is lost: keep them\napart, each with its holder.`,
  );
  return undefined;
}
