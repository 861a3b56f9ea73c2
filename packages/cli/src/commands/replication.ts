import type { ReplicationStatus } from '@transitd/client';
import { Argument, type Command, Option } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { secretFrom, textFrom } from '../terminal/input.ts';
import { fieldOption, serverOptions } from '../terminal/options.ts';
import { tokenCeremonyCommand } from './generate-root.ts';

interface TokenOptions {
  readonly ttl?: string;
  readonly publicKey?: string;
  readonly wrapTtl?: string;
  readonly field?: string;
}

interface AcknowledgeOptions {
  readonly timeout?: string;
  readonly onTimeout?: string;
}

interface ChangeOptions {
  readonly operationToken?: string;
}

/** `replication`: a second cluster that takes over after a disaster. */
export function replicationCommands(program: Command, runner: Runner): void {
  const { serverAction } = runner;
  const replication = program.command('replication').description('replicate to a second cluster, and fail over to it');

  serverOptions(replication.command('status'))
    .description('show the replication of the cluster, as known to the node at the address')
    .action(serverAction(showStatus));

  serverOptions(replication.command('divergence'))
    .description('show how many changes this former primary lost when it followed its successor')
    .action(serverAction(async ({ client, output }) => output.answer(await client.sys.replication.divergence())));

  serverOptions(replication.command('enable-primary'))
    .description('make this cluster the primary of a new replication set')
    .option('--fence-after <duration>', 'refuse writes without contact to a secondary for this long: 5s to 60s (default: never)')
    .action(
      serverAction(async ({ client, output }, { fenceAfter }: { readonly fenceAfter?: string }) =>
        output.done(await client.sys.replication.enablePrimary(fenceAfter), 'This cluster is a primary.'),
      ),
    );

  serverOptions(replication.command('acknowledge'))
    .description('set whether key material is used only once each secondary has it')
    .addArgument(new Argument('<what>', 'what the secondaries must confirm').choices(['key_material', 'none']))
    .option('--timeout <duration>', 'time to wait for the secondaries: 1s to 30s (default: 5s)')
    .addOption(
      new Option(
        '--on-timeout <policy>',
        'refuse to use the material before it is confirmed (the default), or degrade: use it with a warning',
      ).choices(['refuse', 'degrade']),
    )
    .action(
      serverAction(async ({ client, output }, what: 'key_material' | 'none', { timeout, onTimeout }: AcknowledgeOptions) => {
        const request = {
          acknowledge: what,
          ...(timeout !== undefined && { timeout }),
          ...(onTimeout !== undefined && { on_timeout: onTimeout }),
        };
        const done = what === 'none' ? 'Key material is used at once.' : 'Key material is used once each secondary has it.';
        output.done(await client.sys.replication.acknowledge(request), done);
      }),
    );

  fieldOption(replication.command('secondary-token'))
    .description('issue a token with which another cluster becomes a secondary; it can be used once')
    .argument('<id>', 'name of the secondary')
    .option('--ttl <duration>', 'time for which the token can be used, at most 24h (default: 30m)')
    .option('--public-key <key>', 'key of the secondary to encrypt the token for (@file reads a file)')
    .option('--wrap-ttl <duration>', 'wrap the response for this long and print the wrapping token')
    .action(serverAction(issueToken));

  serverOptions(replication.command('revoke-secondary'))
    .description('end the rights of a secondary, and of its unused token')
    .argument('<id>', 'name of the secondary')
    .action(
      serverAction(async ({ client, output }, id: string) =>
        output.done(await client.sys.replication.revokeSecondary(id), `Revoked the secondary ${id}.`),
      ),
    );

  serverOptions(replication.command('demote-primary'))
    .description('end the writes of this primary, so that a secondary can be promoted without loss')
    .action(
      serverAction(async ({ client, output }) =>
        output.done(await client.sys.replication.demotePrimary(), 'This cluster accepts no more writes. Promote its secondary.'),
      ),
    );

  serverOptions(replication.command('disable-primary'))
    .description('end replication on this primary; its secondaries receive nothing more')
    .action(
      serverAction(async ({ client, output }) =>
        output.done(await client.sys.replication.disablePrimary(), 'This cluster no longer replicates.'),
      ),
    );

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

async function issueToken({ client, output, sources }: Session, id: string, options: TokenOptions): Promise<void> {
  const { ttl, publicKey, wrapTtl, field } = options;
  const request = {
    id,
    ...(ttl !== undefined && { ttl }),
    ...(publicKey !== undefined && { secondary_public_key: (await textFrom(publicKey, sources)).trim() }),
  };
  output.answer(await client.sys.replication.secondaryToken(request, { wrapTtl }), { field });
}

async function showStatus({ client, output }: Session): Promise<void> {
  const { data } = await client.sys.replication.status();
  if (output.format === 'json') return output.json(data);
  const row = (title: string, value: unknown): readonly (readonly [string, unknown])[] =>
    value === undefined ? [] : [[title, value]];
  output.rows([
    ['Mode', data.mode],
    ...row('State', data.state),
    ...row('Replication Set', data.cluster_id),
    ...row('Epoch', data.epoch),
    ...row('Position', data.last_wal ?? data.last_remote_wal),
    ...row('Secondary', data.secondary_id),
    ...row('Connection', data.connection_status),
    ...row('Lag (entries)', data.lag_entries),
    ...row('Lag (ms)', data.lag_ms),
    ...row('Before Restore', data.misses_restore),
    ...row('Canary Age (ms)', data.replication_primary_canary_age_ms),
    ...row('Fence', data.fence?.state),
    ...row('Acknowledge', data.acknowledge?.mode),
    ...row('On Timeout', data.acknowledge?.on_timeout),
    ...row('Promoted', data.promotion?.time),
    ...row('Promoted At Position', data.promotion?.position),
    ...row('Missing At Promotion', data.promotion?.missing),
    ...row('Promoted Before Restore', data.promotion?.misses_restore),
    ...row('Diverged State', data.diverged_state),
    ...row('Changes Lost After', data.divergence?.point),
    ...row('Digest', data.merkle_root),
  ]);
  if (data.secondaries === undefined || data.secondaries.length === 0) return;
  output.line('');
  output.table(
    ['Secondary', 'Connection', 'Position', 'Lag (entries)', 'Lag (ms)', 'Heard (ms ago)'],
    rowsOf(data.secondaries),
    data,
  );
}

const rowsOf = (secondaries: NonNullable<ReplicationStatus['secondaries']>): readonly (readonly unknown[])[] =>
  secondaries.map(({ node_id, connection_status, last_wal, lag_entries, lag_ms, last_heartbeat_duration_ms }) =>
    [node_id, connection_status, last_wal, lag_entries, lag_ms, last_heartbeat_duration_ms].map((value) => value ?? ''),
  );
