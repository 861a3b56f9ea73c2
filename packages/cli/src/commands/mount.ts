import type { Mount, MountConfig } from '@transitd/client';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { pairsOf } from '../terminal/members.ts';
import { asksServer, several } from '../terminal/options.ts';

interface Tuning {
  readonly description?: string;
  readonly defaultLeaseTtl?: string;
  readonly maxLeaseTtl?: string;
  readonly ciphertextPrefix?: string;
  readonly allowedManagedKeys?: readonly string[];
}

/** What only the listed members change. */
const configOf = (options: Tuning): MountConfig => ({
  ...(options.defaultLeaseTtl !== undefined && { default_lease_ttl: options.defaultLeaseTtl }),
  ...(options.maxLeaseTtl !== undefined && { max_lease_ttl: options.maxLeaseTtl }),
  ...(options.ciphertextPrefix !== undefined && { ciphertext_prefix: options.ciphertextPrefix }),
  ...(options.allowedManagedKeys !== undefined && { allowed_managed_keys: options.allowedManagedKeys }),
});

const described = ({ description }: Tuning) => ({ ...(description !== undefined && { description }) });

const tunes = (command: Command): Command =>
  asksServer(command)
    .option('--description <text>', 'what it is for')
    .option('--default-lease-ttl <duration>', 'how long its tokens live unless they say otherwise')
    .option('--max-lease-ttl <duration>', 'how long they may live');

const tunesEngine = (command: Command): Command =>
  tunes(command)
    .option('--ciphertext-prefix <word>', 'first part of its ciphertexts')
    .option('--allowed-managed-keys <name>', 'managed key that its keys may use; may be given several times', several);

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

const lists = (command: Command): Command => asksServer(command).option('--detailed', 'with times and ids');

/** `secrets`: where engines are mounted. */
export function secretsCommands(program: Command, { asking }: Runner): void {
  const secrets = program.command('secrets').description('where engines are mounted');

  lists(secrets.command('list'))
    .description('show the mounts')
    .action(asking(async (session, options: Listed) => showMounts(session, (await session.client.sys.mounts()).data, options)));

  tunesEngine(secrets.command('enable'))
    .description('mount an engine')
    .argument('<type>', 'transit')
    .option('--path <path>', 'where; its type unless given')
    .option('--options <name=value>', 'option of the engine; may be given several times', several)
    .action(
      asking(async ({ client, output }, type: string, options: Tuning & { path?: string; options?: readonly string[] }) => {
        const path = options.path ?? type;
        const given = options.options === undefined ? {} : { options: pairsOf('--options', options.options) };
        const answer = await client.sys.enableMount(path, { type, config: configOf(options), ...described(options), ...given });
        output.done(answer, `Enabled ${type} at ${path}/.`);
      }),
    );

  asksServer(secrets.command('disable'))
    .description('remove a mount, and every key in it')
    .argument('<path>')
    .action(
      asking(async ({ client, output }, path: string) => {
        output.done(await client.sys.disableMount(path), `Disabled ${path}.`);
      }),
    );

  asksServer(secrets.command('move'))
    .description('move a mount to another path')
    .argument('<from>')
    .argument('<to>')
    .action(
      asking(async ({ client, output }, from: string, to: string) => {
        const answer = await client.sys.remount(from, to);
        if (output.format === 'json') output.json(answer);
        else output.line(`Moved ${from} to ${to}.`);
      }),
    );

  tunesEngine(secrets.command('tune'))
    .description('change the settings of a mount; what is not given stays')
    .argument('<path>')
    .action(
      asking(async ({ client, output }, path: string, options: Tuning) => {
        output.done(await client.sys.tuneMount(path, { ...configOf(options), ...described(options) }), `Tuned ${path}.`);
      }),
    );
}

/** `auth`: which methods to log in there are. */
export function authCommands(program: Command, { asking }: Runner): void {
  const auth = program.command('auth').description('methods to log in');

  lists(auth.command('list'))
    .description('show the methods')
    .action(
      asking(async (session, options: Listed) => showMounts(session, (await session.client.sys.authMethods()).data, options)),
    );

  tunes(auth.command('enable'))
    .description('enable a method')
    .argument('<type>', 'userpass, approle or jwt')
    .option('--path <path>', 'where; its type unless given')
    .action(
      asking(async ({ client, output }, type: string, options: Tuning & { path?: string }) => {
        const path = options.path ?? type;
        const answer = await client.sys.enableAuth(path, { type, config: configOf(options), ...described(options) });
        output.done(answer, `Enabled ${type} at ${path}/.`);
      }),
    );

  asksServer(auth.command('disable'))
    .description('remove a method, and revoke every token that it gave')
    .argument('<path>')
    .action(
      asking(async ({ client, output }, path: string) => {
        output.done(await client.sys.disableAuth(path), `Disabled ${path}.`);
      }),
    );

  tunes(auth.command('tune'))
    .description('change the settings of a method; what is not given stays')
    .argument('<path>')
    .action(
      asking(async ({ client, output }, path: string, options: Tuning) => {
        output.done(await client.sys.tuneAuth(path, { ...configOf(options), ...described(options) }), `Tuned ${path}.`);
      }),
    );
}
