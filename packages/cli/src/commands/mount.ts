import type { Mount, MountConfig } from '@transitd/client';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { confirmLoss } from '../terminal/confirm.ts';
import { pairsOf } from '../terminal/members.ts';
import { collect, serverOptions, yesOption } from '../terminal/options.ts';
import { loginMethods } from './login.ts';

interface Tuning {
  readonly description?: string;
  readonly defaultLeaseTtl?: string;
  readonly maxLeaseTtl?: string;
  readonly ciphertextPrefix?: string;
  readonly allowedManagedKeys?: readonly string[];
}

/** Contains only the given options, so that all other settings keep their values. */
const configOf = (options: Tuning): MountConfig => ({
  ...(options.defaultLeaseTtl !== undefined && { default_lease_ttl: options.defaultLeaseTtl }),
  ...(options.maxLeaseTtl !== undefined && { max_lease_ttl: options.maxLeaseTtl }),
  ...(options.ciphertextPrefix !== undefined && { ciphertext_prefix: options.ciphertextPrefix }),
  ...(options.allowedManagedKeys !== undefined && { allowed_managed_keys: options.allowedManagedKeys }),
});

const described = ({ description }: Tuning) => ({ ...(description !== undefined && { description }) });

const tuneOptions = (command: Command): Command =>
  serverOptions(command)
    .option('--description <text>', 'description of the mount')
    .option('--default-lease-ttl <duration>', 'default TTL of tokens issued through this mount')
    .option('--max-lease-ttl <duration>', 'maximum TTL of tokens issued through this mount');

const tuneEngineOptions = (command: Command): Command =>
  tuneOptions(command)
    .option('--ciphertext-prefix <word>', 'prefix of the ciphertexts of this mount')
    .option('--allowed-managed-keys <name>', 'managed key that keys of this mount may use; repeatable', collect);

interface Listed {
  readonly detailed?: true;
}

function showMounts({ output }: Session, mounts: Readonly<Record<string, Mount>>, { detailed }: Listed): void {
  const rows = Object.entries(mounts).map(([path, { type, accessor, description, config, uuid }]) =>
    detailed === true
      ? [path, type, accessor, description, config['default_lease_ttl'], config['max_lease_ttl'], uuid]
      : [path, type, accessor, description],
  );
  const titles = ['Path', 'Type', 'Accessor', 'Description', ...(detailed === true ? ['Default TTL', 'Max TTL', 'UUID'] : [])];
  output.table(titles, rows, mounts);
}

const detailedOption = (command: Command): Command => serverOptions(command).option('--detailed', 'also show TTLs and UUIDs');

/** `secrets`: mounts of transit engines. */
export function secretsCommands(program: Command, { serverAction }: Runner): void {
  const secrets = program.command('secrets').description('manage the mounts of secrets engines');

  detailedOption(secrets.command('list'))
    .description('list the mounted engines')
    .action(
      serverAction(async (session, options: Listed) => showMounts(session, (await session.client.sys.mounts()).data, options)),
    );

  tuneEngineOptions(secrets.command('enable'))
    .description('mount an engine')
    .argument('<type>', 'transit')
    .option('--path <path>', 'mount path (default: the type)')
    .option('--options <name=value>', 'option of the engine; repeatable', collect)
    .action(
      serverAction(async ({ client, output }, type: string, options: Tuning & { path?: string; options?: readonly string[] }) => {
        const path = options.path ?? type;
        const engineOptions = options.options === undefined ? {} : { options: pairsOf('--options', options.options) };
        const answer = await client.sys.enableMount(path, {
          type,
          config: configOf(options),
          ...described(options),
          ...engineOptions,
        });
        output.done(answer, `Enabled ${type} at ${path}/.`);
      }),
    );

  yesOption(serverOptions(secrets.command('disable')))
    .description('unmount an engine and delete all its keys')
    .argument('<path>', 'path of the mount')
    .action(
      serverAction(async ({ client, output }, path: string, options: { yes?: true }) => {
        await confirmLoss(`Delete all keys of ${path}? Nothing that they encrypted can be decrypted again.`, options);
        output.done(await client.sys.disableMount(path), `Disabled ${path}, if it existed.`);
      }),
    );

  serverOptions(secrets.command('move'))
    .description('move a mount to another path')
    .argument('<from>', 'current path of the mount')
    .argument('<to>', 'new path of the mount')
    .action(
      serverAction(async ({ client, output }, from: string, to: string) => {
        const answer = await client.sys.remount(from, to);
        if (output.format === 'json') output.json(answer);
        else output.line(`Moved ${from} to ${to}.`);
      }),
    );

  tuneEngineOptions(secrets.command('tune'))
    .description('change settings of a mount; omitted settings keep their values')
    .argument('<path>', 'path of the mount')
    .action(
      serverAction(async ({ client, output }, path: string, options: Tuning) => {
        output.done(await client.sys.tuneMount(path, { ...configOf(options), ...described(options) }), `Tuned ${path}.`);
      }),
    );
}

/** `auth`: mounts of auth methods. */
export function authCommands(program: Command, { serverAction }: Runner): void {
  const auth = program.command('auth').description('manage auth methods');

  detailedOption(auth.command('list'))
    .description('list the enabled auth methods')
    .action(
      serverAction(async (session, options: Listed) =>
        showMounts(session, (await session.client.sys.authMethods()).data, options),
      ),
    );

  tuneOptions(auth.command('enable'))
    .description('enable an auth method')
    .argument('<type>', loginMethods)
    .option('--path <path>', 'mount path (default: the type)')
    .action(
      serverAction(async ({ client, output }, type: string, options: Tuning & { path?: string }) => {
        const path = options.path ?? type;
        const answer = await client.sys.enableAuth(path, { type, config: configOf(options), ...described(options) });
        output.done(answer, `Enabled ${type} at ${path}/.`);
      }),
    );

  serverOptions(auth.command('disable'))
    .description('disable an auth method and revoke every token it issued')
    .argument('<path>', 'path of the mount')
    .action(
      serverAction(async ({ client, output }, path: string) => {
        output.done(await client.sys.disableAuth(path), `Disabled ${path}, if it existed.`);
      }),
    );

  tuneOptions(auth.command('tune'))
    .description('change settings of an auth method; omitted settings keep their values')
    .argument('<path>', 'path of the mount')
    .action(
      serverAction(async ({ client, output }, path: string, options: Tuning) => {
        output.done(await client.sys.tuneAuth(path, { ...configOf(options), ...described(options) }), `Tuned ${path}.`);
      }),
    );
}
