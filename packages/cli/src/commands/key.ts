import type { KeyConfig, KeyRequest } from '@transitd/client';
import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { secretFrom } from '../terminal/input.ts';
import { asksServer, type Mounted, onMount, showsField, wholeNumber } from '../terminal/options.ts';
import { keyDataCommands } from './key-data.ts';

interface CreateOptions extends Mounted {
  readonly type?: string;
  readonly derived?: true;
  readonly convergentEncryption?: true;
  readonly exportable?: true;
  readonly allowPlaintextBackup?: true;
  readonly keySize?: number;
  readonly autoRotatePeriod?: string;
  readonly parameterSet?: string;
  readonly hybridKeyTypeEc?: string;
  readonly managedKeyName?: string;
}

interface ConfigOptions extends Mounted {
  readonly minDecryptionVersion?: number;
  readonly minEncryptionVersion?: number;
  readonly deletionAllowed?: string;
  readonly exportable?: true;
  readonly allowPlaintextBackup?: true;
  readonly autoRotatePeriod?: string;
}

/** `key`: keys and what they do, without having to encode anything. */
export function keyCommands(program: Command, runner: Runner): void {
  const { asking } = runner;
  const key = program.command('key').description('keys, and what they do with data');

  onMount(asksServer(key.command('list')))
    .description('show the names of all keys')
    .action(
      asking(async ({ client, output }, { mount }: Mounted) => output.names((await client.transit(mount).keys()).data.keys)),
    );

  onMount(showsField(key.command('create')))
    .description('make a key')
    .argument('<name>')
    .option('--type <type>', 'aes256-gcm96 unless given')
    .option('--derived', 'each use needs a context, from which its key is derived')
    .option('--convergent-encryption', 'the same plaintext and context give the same ciphertext; needs --derived')
    .option('--exportable', 'it may be exported; this cannot be taken back')
    .option('--allow-plaintext-backup', 'it may be backed up; this cannot be taken back')
    .option('--key-size <bytes>', 'of an hmac key', wholeNumber)
    .option('--auto-rotate-period <duration>', 'how often it gets a new version by itself')
    .option('--parameter-set <set>', 'of ml-dsa and hybrid: 44, 65 or 87')
    .option('--hybrid-key-type-ec <type>', 'the elliptic-curve half of a hybrid key')
    .option('--managed-key-name <name>', 'of a managed_key')
    .action(
      asking(async ({ client, output }, name: string, options: CreateOptions) => {
        output.answer(await client.transit(options.mount).createKey(name, requestOf(options)), options);
      }),
    );

  onMount(showsField(key.command('read')))
    .description('show a key: its settings, its versions and what is public of them')
    .argument('<name>')
    .action(
      asking(async ({ client, output }, name: string, options: Mounted) => {
        output.answer(await client.transit(options.mount).key(name), options);
      }),
    );

  onMount(showsField(key.command('rotate')))
    .description('give a key a new version')
    .argument('<name>')
    .option('--managed-key-name <name>', 'of a managed_key')
    .action(
      asking(async ({ client, output }, name: string, options: Mounted & { managedKeyName?: string }) => {
        const managed = options.managedKeyName === undefined ? {} : { managed_key_name: options.managedKeyName };
        output.answer(await client.transit(options.mount).rotateKey(name, managed), options);
      }),
    );

  onMount(showsField(key.command('config')))
    .description('change the settings of a key; what is not given stays')
    .argument('<name>')
    .option('--min-decryption-version <version>', 'oldest version that opens and verifies', wholeNumber)
    .option('--min-encryption-version <version>', 'oldest version that encrypts and signs; 0 for the latest', wholeNumber)
    .option('--deletion-allowed <bool>', 'whether it may be deleted')
    .option('--exportable', 'it may be exported; this cannot be taken back')
    .option('--allow-plaintext-backup', 'it may be backed up; this cannot be taken back')
    .option('--auto-rotate-period <duration>', 'how often it gets a new version by itself; 0 for never')
    .action(
      asking(async ({ client, output }, name: string, options: ConfigOptions) => {
        const config = configOf(options);
        if (Object.keys(config).length === 0) throw new StartError('there is no setting to change');
        output.answer(await client.transit(options.mount).configureKey(name, config), options);
      }),
    );

  onMount(showsField(key.command('trim')))
    .description('remove old versions, for good')
    .argument('<name>')
    .argument('<version>', 'oldest version that stays', wholeNumber)
    .action(
      asking(async ({ client, output }, name: string, version: number, options: Mounted) => {
        output.answer(await client.transit(options.mount).trimKey(name, version), options);
      }),
    );

  onMount(asksServer(key.command('delete')))
    .description('remove a key, and with it everything that was encrypted under it')
    .argument('<name>')
    .action(
      asking(async ({ client, output }, name: string, { mount }: Mounted) => {
        output.done(await client.transit(mount).deleteKey(name), `Deleted key ${name}.`);
      }),
    );

  onMount(asksServer(key.command('export')))
    .description('show the material of an exportable key, or what is public of it')
    .argument('<kind>', 'encryption-key, signing-key, hmac-key, cmac-key, public-key or certificate-chain')
    .argument('<name>')
    .argument('[version]', 'all unless given')
    .action(
      asking(async ({ client, output }, kind: string, name: string, version: string | undefined, { mount }: Mounted) => {
        const answer = await client.transit(mount).exportKey(name, kind, version);
        output.rows(Object.entries(answer.data.keys), answer);
      }),
    );

  onMount(asksServer(key.command('backup')))
    .description('show a key with all its versions as one text, for restore')
    .argument('<name>')
    .action(
      asking(async ({ client, output }, name: string, { mount }: Mounted) => {
        const answer = await client.transit(mount).backupKey(name);
        if (output.format === 'json') output.json(answer);
        else output.line(answer.data.backup);
      }),
    );

  onMount(asksServer(key.command('restore')))
    .description('make a key from its backup')
    .argument('<backup>', '@file, or - for standard input')
    .argument('[name]', 'the one in the backup unless given')
    .option('-f, --force', 'in the place of a key of that name')
    .action(
      asking(
        async ({ client, output, sources }, backup: string, name: string | undefined, options: Mounted & { force?: true }) => {
          const answer = await client.transit(options.mount).restoreKey(await secretFrom(backup, 'a backup', sources), {
            force: options.force === true,
            ...(name !== undefined && { name }),
          });
          output.done(answer, 'The key is restored.');
        },
      ),
    );

  keyDataCommands(key, runner);
}

const requestOf = (options: CreateOptions): KeyRequest => ({
  ...(options.type !== undefined && { type: options.type }),
  ...(options.derived === true && { derived: true }),
  ...(options.convergentEncryption === true && { convergent_encryption: true }),
  ...(options.exportable === true && { exportable: true }),
  ...(options.allowPlaintextBackup === true && { allow_plaintext_backup: true }),
  ...(options.keySize !== undefined && { key_size: options.keySize }),
  ...(options.autoRotatePeriod !== undefined && { auto_rotate_period: options.autoRotatePeriod }),
  ...(options.parameterSet !== undefined && { parameter_set: options.parameterSet }),
  ...(options.hybridKeyTypeEc !== undefined && { hybrid_key_type_pqc: 'ml-dsa', hybrid_key_type_ec: options.hybridKeyTypeEc }),
  ...(options.managedKeyName !== undefined && { managed_key_name: options.managedKeyName }),
});

function configOf(options: ConfigOptions): KeyConfig {
  const { deletionAllowed } = options;
  if (deletionAllowed !== undefined && deletionAllowed !== 'true' && deletionAllowed !== 'false')
    throw new StartError('--deletion-allowed is true or false');
  return {
    ...(options.minDecryptionVersion !== undefined && { min_decryption_version: options.minDecryptionVersion }),
    ...(options.minEncryptionVersion !== undefined && { min_encryption_version: options.minEncryptionVersion }),
    ...(deletionAllowed !== undefined && { deletion_allowed: deletionAllowed === 'true' }),
    ...(options.exportable === true && { exportable: true }),
    ...(options.allowPlaintextBackup === true && { allow_plaintext_backup: true }),
    ...(options.autoRotatePeriod !== undefined && { auto_rotate_period: options.autoRotatePeriod }),
  };
}
