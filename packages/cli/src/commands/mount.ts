import type { Mount } from '@transitd/client';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { confirmLoss } from '../terminal/confirm.ts';
import { addFields, fieldsIn, text, texts } from '../terminal/field-options.ts';
import { pairsOf } from '../terminal/members.ts';
import { collect, serverOptions, yesOption } from '../terminal/options.ts';
import { loginMethods } from './login.ts';

const description = { description: text('text', 'description of the mount') };
const methodConfig = {
  default_lease_ttl: text('duration', 'default TTL of tokens issued through this mount'),
  max_lease_ttl: text('duration', 'maximum TTL of tokens issued through this mount'),
};
const engineConfig = {
  ...methodConfig,
  ciphertext_prefix: text('word', 'prefix of the ciphertexts of this mount'),
  allowed_managed_keys: texts('name', 'managed key that keys of this mount may use; repeatable'),
};
const [methodFields, engineFields] = [
  { ...description, ...methodConfig },
  { ...description, ...engineConfig },
];

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

  addFields(serverOptions(secrets.command('enable')), engineFields)
    .description('mount an engine')
    .argument('<type>', 'transit')
    .option('--path <path>', 'mount path (default: the type)')
    .option('--options <name=value>', 'option of the engine; repeatable', collect)
    .action(
      serverAction(async ({ client, output }, type: string, options: { path?: string; options?: readonly string[] }) => {
        const path = options.path ?? type;
        const engineOptions = options.options === undefined ? {} : { options: pairsOf('--options', options.options) };
        const answer = await client.sys.enableMount(path, {
          type,
          config: fieldsIn(engineConfig, options),
          ...fieldsIn(description, options),
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

  addFields(serverOptions(secrets.command('tune')), engineFields)
    .description('change settings of a mount; omitted settings keep their values')
    .argument('<path>', 'path of the mount')
    .action(
      serverAction(async ({ client, output }, path: string, options: object) => {
        output.done(await client.sys.tuneMount(path, fieldsIn(engineFields, options)), `Tuned ${path}.`);
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

  addFields(serverOptions(auth.command('enable')), methodFields)
    .description('enable an auth method')
    .argument('<type>', loginMethods)
    .option('--path <path>', 'mount path (default: the type)')
    .action(
      serverAction(async ({ client, output }, type: string, options: { path?: string }) => {
        const path = options.path ?? type;
        const answer = await client.sys.enableAuth(path, {
          type,
          config: fieldsIn(methodConfig, options),
          ...fieldsIn(description, options),
        });
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

  addFields(serverOptions(auth.command('tune')), methodFields)
    .description('change settings of an auth method; omitted settings keep their values')
    .argument('<path>', 'path of the mount')
    .action(
      serverAction(async ({ client, output }, path: string, options: object) => {
        output.done(await client.sys.tuneAuth(path, fieldsIn(methodFields, options)), `Tuned ${path}.`);
      }),
    );
}
