import { Argument, type Command, Option } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { textFrom } from '../terminal/input.ts';
import { fieldOption, serverOptions } from '../terminal/options.ts';

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

/** Commands for the primary of a replication set. */
export function primaryCommands(replication: Command, { serverAction }: Runner): void {
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
}

async function issueToken({ client, output, sources }: Session, id: string, options: TokenOptions): Promise<void> {
  const { ttl, publicKey, wrapTtl, field } = options;
  const request = {
    id,
    ...(ttl !== undefined && { ttl }),
    ...(publicKey !== undefined && { secondary_public_key: (await textFrom(publicKey, sources)).trim() }),
  };
  output.answer(await client.sys.replication.secondaryToken(request, { wrapTtl }), { field });
}
