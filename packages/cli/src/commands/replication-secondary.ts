import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { secretFrom } from '../terminal/input.ts';
import { serverOptions } from '../terminal/options.ts';
import { tokenCeremonyCommand } from './generate-root.ts';

interface ChangeOptions {
  readonly operationToken?: string;
}

/** Commands for a cluster that becomes, is or was a secondary. */
export function secondaryCommands(replication: Command, { serverAction }: Runner): void {
  serverOptions(replication.command('enable-secondary'))
    .description('make this cluster a secondary: the records of the primary replace its own')
    .argument('<token>', 'activation token: - for standard input or @file')
    .action(
      serverAction(async ({ client, output, sources }, argument: string) => {
        const token = await secretFrom(argument, 'an activation token', sources);
        output.done(
          await client.sys.replication.enableSecondary(token.trim()),
          'This cluster is a secondary. When it has received the state, unseal nodes with a Shamir seal with the shares of the primary.',
        );
      }),
    );

  serverOptions(replication.command('salvage'))
    .description('restore a lost key from the kept state of a former primary, under another name')
    .argument('<snapshot>', 'name of the archive in diverged/ of the active node')
    .argument('<key>', 'name of the key in the archive')
    .argument('<name>', 'name of the restored key')
    .option('--mount <path>', 'path of the mount', 'transit')
    .action(
      serverAction(
        async ({ client, output }, snapshot: string, key: string, name: string, { mount }: { readonly mount: string }) => {
          output.done(await client.sys.replication.salvage({ snapshot, mount, key, name }), `Restored the key ${name}.`);
        },
      ),
    );

  withOperationToken(replication.command('promote'))
    .description('make this secondary the primary; with a fence, waits until the former primary has stopped')
    .option(
      '--force',
      'promote although the primary is alive, ahead or restored, or this cluster is superseded, and lose the missing entries',
    )
    .action(
      serverAction(async ({ client, output, sources }, { force, ...options }: ChangeOptions & { readonly force?: true }) => {
        const operationToken = await operationTokenOf(options, sources);
        output.answer(await client.sys.replication.promote({ force: force === true, operationToken }));
      }),
    );

  withOperationToken(replication.command('generate-public-key'))
    .description('make a key for which the primary can encrypt the next activation token')
    .action(
      serverAction(async ({ client, output, sources }, options: ChangeOptions) => {
        const operationToken = await operationTokenOf(options, sources);
        output.answer(await client.sys.replication.generatePublicKey({ operationToken }));
      }),
    );

  withOperationToken(replication.command('update-primary'))
    .description('connect this secondary to the primary of its set by another activation token; its records stay')
    .argument('<token>', 'activation token: - for standard input or @file')
    .action(
      serverAction(async ({ client, output, sources }, argument: string, options: ChangeOptions) => {
        const token = (await secretFrom(argument, 'an activation token', sources)).trim();
        const operationToken = await operationTokenOf(options, sources);
        output.done(await client.sys.replication.updatePrimary({ token, operationToken }), 'The secondary uses the new token.');
      }),
    );

  withOperationToken(replication.command('recover'))
    .description('connect this secondary to its primary again, also after it has stopped')
    .option('--resynchronize', 'receive the whole state again')
    .action(
      serverAction(
        async ({ client, output, sources }, { resynchronize, ...options }: ChangeOptions & { readonly resynchronize?: true }) => {
          const operationToken = await operationTokenOf(options, sources);
          const request = { resynchronize: resynchronize === true, operationToken };
          output.done(await client.sys.replication.recover(request), 'The secondary connects to its primary again.');
        },
      ),
    );

  withOperationToken(replication.command('disable-secondary'))
    .description('end replication on a secondary, which keeps its state and serves it as a cluster of its own')
    .option('--force', 'leave the set although the primary is alive, ahead or restored')
    .action(
      serverAction(async ({ client, output, sources }, { force, ...options }: ChangeOptions & { readonly force?: true }) => {
        const operationToken = await operationTokenOf(options, sources);
        const request = { force: force === true, operationToken };
        output.done(await client.sys.replication.disableSecondary(request), 'This cluster no longer replicates.');
      }),
    );
}

/** `replication operation-token`: changes of a secondary, authorized by shares. */
export function operationTokenCommands(replication: Command, runner: Runner): void {
  const { serverAction } = runner;
  const token = replication.command('operation-token').description('authorize changes of a secondary with shares');
  tokenCeremonyCommand(token.command('generate'), {
    runner,
    what: 'an operation token',
    calls: ({ sys: { replication: calls } }) => ({
      status: () => calls.operationTokenGeneration(),
      start: (otp) => calls.startOperationToken(otp),
      cancel: (nonce) => calls.cancelOperationToken(nonce),
      update: (given) => calls.generateOperationToken(given),
    }),
  });
  serverOptions(token.command('delete'))
    .description('end an operation token')
    .argument('<token>', '- for standard input or @file')
    .action(
      serverAction(async ({ client, output, sources }, argument: string) => {
        const text = await secretFrom(argument, 'an operation token', sources);
        output.done(await client.sys.replication.deleteOperationToken(text.trim()), 'Ended the operation token.');
      }),
    );
}

const withOperationToken = (command: Command): Command =>
  serverOptions(command).option(
    '--operation-token <token>',
    'authorize by an operation token instead of a token: - for standard input or @file',
  );

const operationTokenOf = async ({ operationToken }: ChangeOptions, sources: Session['sources']): Promise<string | undefined> =>
  operationToken === undefined ? undefined : (await secretFrom(operationToken, 'an operation token', sources)).trim();
