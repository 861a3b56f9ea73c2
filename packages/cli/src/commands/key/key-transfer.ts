import { StartError } from '@transitd/process';
import { type Command, Option } from 'commander';
import { type Encoding, encodings } from '../../local/import-material.ts';
import type { Runner } from '../../runner/runner.ts';
import type { Session } from '../../session/session.ts';
import { addFields, fieldsIn, flag, text } from '../../terminal/field-options.ts';
import { bytesFrom, promptHidden, refusePlainSecret, secretFrom } from '../../terminal/input.ts';
import { fieldOption, type Mounted, mountOption, serverOptions, wholeNumber } from '../../terminal/options.ts';

interface ImportOptions extends Mounted {
  readonly type?: string;
  readonly encoding?: Encoding;
  readonly passphrase?: string;
  readonly newVersion?: true;
}

const settings = {
  derived: flag('derive a key for each context; every operation then requires a context'),
  exportable: flag('allow export of the key material; cannot be undone'),
  allow_plaintext_backup: flag('allow backups that contain the key material in plaintext; cannot be undone'),
  allow_rotation: flag('allow rotations; the service generates the new versions'),
  auto_rotate_period: text('duration', 'interval of automatic rotation; requires --allow-rotation'),
};

/** `key import`, `byok-export`, `csr` and `set-certificate`: key material and certificates to and from other systems. */
export function keyTransferCommands(key: Command, { serverAction }: Runner): void {
  const importCommand = mountOption(serverOptions(key.command('import')))
    .description('import a key; wraps the material for the transport by itself')
    .argument('<name>', 'name of the key')
    .argument('<material>', '@file, or - for standard input: PEM, DER, PKCS#12, or the bytes of a symmetric key')
    .option('--type <type>', 'key type (default: that of the key pair, otherwise aes256-gcm96)')
    .addOption(new Option('--encoding <encoding>', 'encoding of the material (default: recognized)').choices(encodings))
    .option(
      '--passphrase <passphrase>',
      'of an encrypted private key or a PKCS#12 file: @file, or - for standard input (default: a prompt)',
    )
    .option('--new-version', 'add a version to a key that was imported before');
  addFields(importCommand, settings).action(
    serverAction(async (session, name: string, material: string, options: ImportOptions) => {
      const body = await importBody(session, material, options);
      const keys = session.client.transit(options.mount);
      if (options.newVersion === true)
        return session.output.done(await keys.importVersion(name, body), `Imported a version of ${name}.`);
      const given = fieldsIn(settings, options);
      if (given.auto_rotate_period !== undefined && given.allow_rotation !== true)
        throw new StartError('--auto-rotate-period requires --allow-rotation');
      session.output.done(await keys.importKey(name, { ...body, ...given }), `Imported key ${name}.`);
    }),
  );

  mountOption(serverOptions(key.command('byok-export')))
    .description('export a key wrapped under an RSA key, in the form that an import takes')
    .argument('<destination>', 'RSA key that wraps, such as the imported wrapping key of another service')
    .argument('<source>', 'key to export')
    .argument('[version]', 'key version (default: all)')
    .action(
      serverAction(
        async ({ client, output }, destination: string, source: string, version: string | undefined, { mount }: Mounted) => {
          const answer = await client.transit(mount).byokExport(destination, source, version);
          output.rows(Object.entries(answer.data.keys), answer);
        },
      ),
    );

  mountOption(fieldOption(key.command('csr')))
    .description('print a certificate request signed by a key')
    .argument('<name>', 'name of the key')
    .argument('[template]', 'request in PEM with subject and extensions: @file, or - for standard input')
    .option('--key-version <version>', 'key version that signs (default: latest)', wholeNumber)
    .action(
      serverAction(
        async (
          { client, output, sources },
          name: string,
          template: string | undefined,
          options: Mounted & { keyVersion?: number },
        ) => {
          const answer = await client.transit(options.mount).certificateRequest(name, {
            ...(template !== undefined && { csr: (await bytesFrom(template, sources)).toString('utf8') }),
            ...(options.keyVersion !== undefined && { version: options.keyVersion }),
          });
          if (output.format === 'json' || options.field !== undefined) output.answer(answer, options);
          else output.line(answer.data.csr.trimEnd());
        },
      ),
    );

  mountOption(serverOptions(key.command('set-certificate')))
    .description('store the certificate chain of a key version')
    .argument('<name>', 'name of the key')
    .argument('<chain>', 'PEM, leaf first: @file, or - for standard input')
    .option('--key-version <version>', 'key version of the leaf (default: latest)', wholeNumber)
    .action(
      serverAction(
        async ({ client, output, sources }, name: string, chain: string, options: Mounted & { keyVersion?: number }) => {
          const answer = await client.transit(options.mount).setCertificate(name, {
            certificate_chain: (await bytesFrom(chain, sources)).toString('utf8'),
            ...(options.keyVersion !== undefined && { version: options.keyVersion }),
          });
          output.done(answer, `Stored the certificate chain of ${name}.`);
        },
      ),
    );
}

async function importBody(
  { client, sources }: Session,
  argument: string,
  options: ImportOptions,
): Promise<Readonly<Record<string, unknown>>> {
  refusePlainSecret(argument, 'key material');
  const [{ materialFrom, isEncrypted }, { wrapForImport }] = await Promise.all([
    import('../../local/key-material.ts'),
    import('../../local/import-material.ts'),
  ]);
  const content = await bytesFrom(argument, sources);
  const passphrase =
    options.passphrase !== undefined
      ? await secretFrom(options.passphrase, 'a passphrase', sources)
      : isEncrypted(content, options.encoding)
        ? await promptHidden('Passphrase (not shown): ', 'use --passphrase @FILE')
        : undefined;
  const material = materialFrom(content, { ...options, passphrase });
  content.fill(0);
  if (material.kind === 'public') return { type: material.type, public_key: material.pem };
  try {
    const wrappingKey = (await client.transit(options.mount).wrappingKey()).data.public_key;
    return { type: material.type, ciphertext: wrapForImport(material.bytes, wrappingKey), hash_function: 'SHA256' };
  } finally {
    material.bytes.fill(0);
  }
}
