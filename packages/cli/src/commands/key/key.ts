import type { KeyRequest, Page } from '@transitd/client';
import { StartError } from '@transitd/process';
import { type Command, Option } from 'commander';
import type { Runner } from '../../runner/runner.ts';
import { confirmLoss } from '../../terminal/confirm.ts';
import { addFields, bool, fieldsIn, flag, text, whole } from '../../terminal/field-options.ts';
import { secretFrom } from '../../terminal/input.ts';
import {
  fieldOption,
  type Mounted,
  mountOption,
  pageOptions,
  serverOptions,
  wholeNumber,
  yesOption,
} from '../../terminal/options.ts';
import { keyDataCommands } from './key-data.ts';
import { keyFileCommands } from './key-file.ts';
import { keyTransferCommands } from './key-transfer.ts';

const managedKeyName = { managed_key_name: text('name', 'managed key to use, for type managed_key') };
const createFields = {
  type: text('type', 'key type (default: aes256-gcm96)'),
  derived: flag('derive a key for each context; every operation then requires a context'),
  convergent_encryption: flag('the same plaintext and context give the same ciphertext; requires --derived'),
  exportable: flag('allow export of the key material; cannot be undone'),
  allow_plaintext_backup: flag('allow backups that contain the key material in plaintext; cannot be undone'),
  key_size: whole('bytes', 'size of an hmac key'),
  auto_rotate_period: text('duration', 'interval of automatic rotation'),
  parameter_set: text('set', 'parameter set of an ml-dsa or hybrid key: 44, 65 or 87'),
  hybrid_key_type_ec: text('type', 'elliptic-curve key type of a hybrid key'),
  ...managedKeyName,
};
const configFields = {
  min_decryption_version: whole('version', 'oldest key version allowed to decrypt and verify'),
  min_encryption_version: whole('version', 'oldest key version allowed to encrypt and sign; 0 for the latest'),
  deletion_allowed: bool('whether the key can be deleted: true or false'),
  exportable: createFields.exportable,
  allow_plaintext_backup: createFields.allow_plaintext_backup,
  auto_rotate_period: text('duration', 'interval of automatic rotation; 0 to disable'),
  keep_encryption_versions: whole('count', 'versions that may encrypt and sign, with the newest; 0 for no limit'),
  keep_decryption_versions: whole('count', 'versions that may decrypt and verify, with the newest; 0 for no limit'),
  trim_after: text('duration', 'delete versions that no longer decrypt after this time; 0 for never'),
  min_mac_length: whole('bytes', 'shortest CMAC that verifies without mac_length, 4 to 16'),
  max_operations: whole('count', 'encryptions and signatures of one version, then none; 0 for the default'),
};

/** Of commands that take versions away. */
interface LossOptions {
  readonly unlessUsedWithin: string;
}

/** Adds the option of commands that take versions away. */
const lossOption = (command: Command): Command =>
  command.option(
    '--unless-used-within <duration>',
    'refuse if a version that would go was used within this time, or if that is not known; 0 to not ask',
    '30d',
  );

const unlessUsed = ({ unlessUsedWithin }: LossOptions) =>
  unlessUsedWithin === '0' ? {} : { unless_used_within: unlessUsedWithin };

/** `key`: named keys and their operations; the commands do the base64 encoding. */
export function keyCommands(program: Command, runner: Runner): void {
  const key = program.command('key').description('manage keys, and encrypt, sign or hash data with them');
  namedKeyCommands(key, runner);
  usageCommand(key, runner);
  changeCommands(key, runner);
  availabilityCommands(key, runner);
  copyCommands(key, runner);
  keyFileCommands(key, runner);
  keyTransferCommands(key, runner);
  keyDataCommands(key, runner);
}

/** Lists, creates and shows keys. */
function namedKeyCommands(key: Command, { serverAction }: Runner): void {
  pageOptions(mountOption(serverOptions(key.command('list'))))
    .description('list the key names')
    .action(
      serverAction(async ({ client, output }, { mount, ...page }: Mounted & Page) =>
        output.names((await client.transit(mount).keys(page)).data.keys),
      ),
    );

  addFields(mountOption(fieldOption(key.command('create'))), createFields)
    .description('create a key')
    .argument('<name>', 'name of the key')
    .action(
      serverAction(async ({ client, output }, name: string, options: Mounted) => {
        const given = fieldsIn(createFields, options);
        const isHybrid = given.hybrid_key_type_ec !== undefined;
        const request: KeyRequest = { ...given, ...(isHybrid && { hybrid_key_type_pqc: 'ml-dsa' }) };
        output.answer(await client.transit(options.mount).createKey(name, request), options);
      }),
    );

  mountOption(fieldOption(key.command('read')))
    .description('show the settings, versions and public keys of a key')
    .argument('<name>', 'name of the key')
    .action(
      serverAction(async ({ client, output }, name: string, options: Mounted) => {
        output.answer(await client.transit(options.mount).key(name), options);
      }),
    );
}

/** Shows how often the versions of a key were used. */
function usageCommand(key: Command, { serverAction }: Runner): void {
  mountOption(fieldOption(key.command('usage')))
    .description('show how often each version of a key was used, and when last')
    .argument('<name>', 'name of the key')
    .action(
      serverAction(async ({ client, output }, name: string, options: Mounted & { field?: string }) => {
        const answer = await client.transit(options.mount).keyUsage(name);
        if (options.field !== undefined) return output.answer(answer, options);
        const { versions, counting_since: since = 'no time on: some node does not count yet' } = answer.data;
        const rows = Object.entries(versions).map(([version, use]) => [
          ...[version, use.encryptions, use.decryptions, use.signatures, use.verifications],
          use.last_used_time,
        ]);
        output.warnings(answer);
        output.table(['Version', 'Encryptions', 'Decryptions', 'Signatures', 'Verifications', 'Last used'], rows, answer);
        if (output.format === 'table') output.notice(`Counted from ${since}.`);
      }),
    );
}

/** Changes versions and settings of a key, and deletes keys. */
function changeCommands(key: Command, { serverAction }: Runner): void {
  addFields(mountOption(fieldOption(key.command('rotate'))), managedKeyName)
    .description('rotate a key to a new version')
    .argument('<name>', 'name of the key')
    .action(
      serverAction(async ({ client, output }, name: string, options: Mounted) => {
        output.answer(await client.transit(options.mount).rotateKey(name, fieldsIn(managedKeyName, options)), options);
      }),
    );

  addFields(lossOption(mountOption(fieldOption(key.command('config')))), configFields)
    .description('change settings of a key; omitted settings keep their values')
    .argument('<name>', 'name of the key')
    .action(
      serverAction(async ({ client, output }, name: string, options: Mounted & LossOptions) => {
        const config = fieldsIn(configFields, options);
        if (Object.keys(config).length === 0) throw new StartError('no setting to change: use at least one option');
        const mayTakeAway = config.min_decryption_version !== undefined || config.keep_decryption_versions !== undefined;
        const asked = mayTakeAway ? { ...config, ...unlessUsed(options) } : config;
        output.answer(await client.transit(options.mount).configureKey(name, asked), options);
      }),
    );

  lossOption(yesOption(mountOption(fieldOption(key.command('trim')))))
    .description('permanently delete old key versions')
    .argument('<name>', 'name of the key')
    .argument('<version>', 'oldest key version to keep', wholeNumber)
    .action(
      serverAction(async ({ client, output }, name: string, version: number, options: Mounted & LossOptions & { yes?: true }) => {
        await confirmLoss(
          `Delete the versions of the key ${name} below ${version}? Nothing that they encrypted can be decrypted again.`,
          options,
        );
        output.answer(await client.transit(options.mount).trimKey(name, version, unlessUsed(options)), options);
      }),
    );

  lossOption(yesOption(mountOption(serverOptions(key.command('delete')))))
    .description('delete a key; data encrypted with it can no longer be decrypted')
    .argument('<name>', 'name of the key')
    .action(
      serverAction(async ({ client, output }, name: string, { mount, ...options }: Mounted & LossOptions & { yes?: true }) => {
        await confirmLoss(`Delete the key ${name}? Nothing that it encrypted can be decrypted again.`, options);
        output.done(await client.transit(mount).deleteKey(name, unlessUsed(options)), `Deleted key ${name}.`);
      }),
    );
}

/** Takes a key or one of its versions out of use, and back. */
function availabilityCommands(key: Command, { serverAction }: Runner): void {
  mountOption(fieldOption(key.command('soft-delete')))
    .description('refuse every use of a key until it is restored')
    .argument('<name>', 'name of the key')
    .action(
      serverAction(async ({ client, output }, name: string, options: Mounted) => {
        output.answer(await client.transit(options.mount).softDeleteKey(name), options);
      }),
    );

  lossOption(mountOption(fieldOption(key.command('schedule-deletion'))))
    .description('soft-delete a key, and delete it permanently later')
    .argument('<name>', 'name of the key')
    .argument('<after>', 'time until the deletion: 7d to 90d')
    .action(
      serverAction(async ({ client, output }, name: string, after: string, options: Mounted & LossOptions) => {
        output.answer(await client.transit(options.mount).scheduleDeletion(name, after, unlessUsed(options)), options);
      }),
    );

  mountOption(fieldOption(key.command('soft-delete-restore')))
    .description('let a soft-deleted key be used again, and cancel its scheduled deletion')
    .argument('<name>', 'name of the key')
    .action(
      serverAction(async ({ client, output }, name: string, options: Mounted) => {
        output.answer(await client.transit(options.mount).restoreDeletedKey(name), options);
      }),
    );

  mountOption(fieldOption(key.command('disable-version')))
    .description('refuse every use of a key version; the latest cannot be disabled')
    .argument('<name>', 'name of the key')
    .argument('<version>', 'key version', wholeNumber)
    .option('--reason <text>', 'shown to readers of the key')
    .action(
      serverAction(async ({ client, output }, name: string, version: number, options: Mounted & { reason?: string }) => {
        output.answer(await client.transit(options.mount).disableVersion(name, version, options.reason), options);
      }),
    );

  mountOption(fieldOption(key.command('enable-version')))
    .description('let a disabled key version be used again')
    .argument('<name>', 'name of the key')
    .argument('<version>', 'key version', wholeNumber)
    .action(
      serverAction(async ({ client, output }, name: string, version: number, options: Mounted) => {
        output.answer(await client.transit(options.mount).enableVersion(name, version), options);
      }),
    );
}

/** Copies key material out of the service, and back. */
function copyCommands(key: Command, { serverAction }: Runner): void {
  mountOption(serverOptions(key.command('export')))
    .description('export the key material of an exportable key, or its public key')
    .argument('<kind>', 'encryption-key, signing-key, hmac-key, cmac-key, public-key or certificate-chain')
    .argument('<name>', 'name of the key')
    .argument('[version]', 'key version (default: all)')
    .addOption(
      new Option('--encoding <encoding>', 'raw or der in base64, pem, or jwk (default: by key type)').choices([
        'raw',
        'der',
        'pem',
        'jwk',
      ]),
    )
    .action(
      serverAction(
        async (
          { client, output },
          kind: string,
          name: string,
          version: string | undefined,
          { mount, encoding: format }: Mounted & { encoding?: string },
        ) => {
          const answer = await client.transit(mount).exportKey(name, kind, { version, format });
          output.rows(Object.entries(answer.data.keys), answer);
        },
      ),
    );

  mountOption(serverOptions(key.command('backup')))
    .description('print a plaintext backup of a key with all its versions')
    .argument('<name>', 'name of the key')
    .action(
      serverAction(async ({ client, output }, name: string, { mount }: Mounted) => {
        const answer = await client.transit(mount).backupKey(name);
        if (output.format === 'json') output.json(answer);
        else output.line(answer.data.backup);
      }),
    );

  mountOption(serverOptions(key.command('restore')))
    .description('restore a key from a backup')
    .argument('<backup>', '@file, or - for standard input')
    .argument('[name]', 'name of the restored key (default: the name in the backup)')
    .option('-f, --force', 'overwrite an existing key with this name')
    .action(
      serverAction(
        async ({ client, output, sources }, backup: string, name: string | undefined, options: Mounted & { force?: true }) => {
          const answer = await client.transit(options.mount).restoreKey(await secretFrom(backup, 'a backup', sources), {
            force: options.force === true,
            ...(name !== undefined && { name }),
          });
          output.done(answer, 'Restored the key.');
        },
      ),
    );
}
