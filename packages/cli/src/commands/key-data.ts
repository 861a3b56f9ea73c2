import type { DataOptions, SignOptions } from '@transitd/client';
import { exitCode, StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { bytesFrom, type Sources, textFrom } from '../terminal/input.ts';
import { type Mounted, onMount, showsField, wholeNumber } from '../terminal/options.ts';
import type { Output } from '../terminal/output.ts';

interface UseOptions extends Mounted {
  readonly context?: string;
  readonly associatedData?: string;
  readonly keyVersion?: number;
  readonly paddingScheme?: string;
}

const uses = (command: Command): Command =>
  onMount(showsField(command))
    .option('--context <text>', 'of a derived key; a text, or @file')
    .option('--associated-data <text>', 'what goes with the data unencrypted and must be the same again; a text, or @file')
    .option('--padding-scheme <scheme>', 'of an RSA key');
const picksVersion = (command: Command): Command =>
  command.option('--key-version <version>', 'the latest unless given', wholeNumber);

interface SignedOptions extends Mounted {
  readonly hashAlgorithm?: string;
  readonly signatureAlgorithm?: string;
  readonly marshalingAlgorithm?: string;
  readonly saltLength?: string;
  readonly prehashed?: true;
  readonly context?: string;
  readonly keyVersion?: number;
}

const signs = (command: Command): Command =>
  onMount(showsField(command))
    .option('--hash-algorithm <name>', 'sha2-256 unless given')
    .option('--signature-algorithm <name>', 'pss or pkcs1v15, of an RSA key')
    .option('--marshaling-algorithm <name>', 'asn1 or jws, of an ECDSA key')
    .option('--salt-length <length>', 'of pss')
    .option('--prehashed', 'the data is a hash already')
    .option('--context <text>', 'of a derived key; a text, or @file');

const dataArgument = ['[data]', 'a text, @file, or - for standard input, which is read unless given'] as const;

/** `key encrypt` and its like: bytes in and out, encoded on the way. */
export function keyDataCommands(key: Command, { asking }: Runner): void {
  picksVersion(uses(key.command('encrypt')))
    .description('encrypt data; shows the ciphertext')
    .argument('<name>')
    .argument(...dataArgument)
    .option('--type <type>', 'of a key that is made by this')
    .action(
      asking(
        async ({ client, output, sources }, name: string, data: string | undefined, options: UseOptions & { type?: string }) => {
          const more = options.type === undefined ? {} : { type: options.type };
          const answer = await client
            .transit(options.mount)
            .encrypt(name, await base64From(data, sources), { ...(await dataOptions(options, sources)), ...more });
          showOne(output, answer, answer.data.ciphertext, options);
        },
      ),
    );

  uses(key.command('decrypt'))
    .description('decrypt a ciphertext; shows the plaintext, byte by byte')
    .argument('<name>')
    .argument('[ciphertext]', 'or @file, or - for standard input, which is read unless given')
    .action(
      asking(async ({ client, output, sources }, name: string, given: string | undefined, options: UseOptions) => {
        const ciphertext = (await textFrom(given ?? '-', sources)).trim();
        const answer = await client.transit(options.mount).decrypt(name, ciphertext, await dataOptions(options, sources));
        if (output.format === 'json' || options.field !== undefined) return output.answer(answer, options);
        output.warnings(answer);
        output.raw(Buffer.from(answer.data.plaintext, 'base64'));
      }),
    );

  picksVersion(uses(key.command('rewrap')))
    .description('encrypt a ciphertext anew under the latest version, without showing what it holds')
    .argument('<name>')
    .argument('[ciphertext]', 'or @file, or - for standard input, which is read unless given')
    .action(
      asking(async ({ client, output, sources }, name: string, given: string | undefined, options: UseOptions) => {
        const ciphertext = (await textFrom(given ?? '-', sources)).trim();
        const { padding_scheme: scheme, ...rest } = await dataOptions(options, sources);
        if (scheme !== undefined) throw new StartError('rewrap has two padding schemes: write to its path to name them');
        const answer = await client.transit(options.mount).rewrap(name, ciphertext, rest);
        showOne(output, answer, answer.data.ciphertext, options);
      }),
    );

  uses(key.command('datakey'))
    .description('make a key for data: encrypted, and with plaintext also in clear (base64)')
    .argument('<kind>', 'plaintext or wrapped')
    .argument('<name>')
    .option('--bits <count>', '128, 256 or 512; 256 unless given', wholeNumber)
    .action(
      asking(async ({ client, output, sources }, kind: string, name: string, options: UseOptions & { bits?: number }) => {
        if (kind !== 'plaintext' && kind !== 'wrapped') throw new StartError('a data key is plaintext or wrapped');
        const bits = options.bits === undefined ? {} : { bits: options.bits };
        const given = await dataOptions(options, sources);
        output.answer(await client.transit(options.mount).datakey(name, kind, { ...given, ...bits }), options);
      }),
    );

  picksVersion(signs(key.command('sign')))
    .description('sign data; shows the signature')
    .argument('<name>')
    .argument(...dataArgument)
    .action(
      asking(async ({ client, output, sources }, name: string, data: string | undefined, options: SignedOptions) => {
        const given = await signOptions(options, sources);
        const answer = await client.transit(options.mount).sign(name, await base64From(data, sources), given);
        showOne(output, answer, answer.data.signature, options);
      }),
    );

  signs(key.command('verify'))
    .description('exit 0 when a signature, an HMAC or a CMAC fits the data, 2 when it does not')
    .argument('<name>')
    .argument(...dataArgument)
    .option('--signature <text>', 'as sign shows it, or @file')
    .option('--hmac <text>', 'as hmac shows it, or @file')
    .option('--cmac <text>', 'as cmac shows it, or @file')
    .action(
      asking(async ({ client, output, sources }, name: string, data: string | undefined, options: VerifyOptions) => {
        const proof = await proofIn(options, sources);
        const given = await signOptions(options, sources);
        const answer = await client.transit(options.mount).verify(name, await base64From(data, sources), proof, given);
        const { valid } = answer.data;
        if (output.format === 'json' || options.field !== undefined) output.answer(answer, options);
        else output.line(valid ? 'valid' : 'not valid');
        return valid ? exitCode.ok : exitCode.denied;
      }),
    );

  picksVersion(onMount(showsField(key.command('hmac'))))
    .description('make an HMAC of data')
    .argument('<name>')
    .argument(...dataArgument)
    .option('--algorithm <name>', 'sha2-256 unless given')
    .action(
      asking(async ({ client, output, sources }, name: string, data: string | undefined, options: MacOptions) => {
        const given = { ...versionIn(options), ...(options.algorithm !== undefined && { algorithm: options.algorithm }) };
        const answer = await client.transit(options.mount).hmac(name, await base64From(data, sources), given);
        showOne(output, answer, answer.data.hmac, options);
      }),
    );

  picksVersion(onMount(showsField(key.command('cmac'))))
    .description('make a CMAC of data')
    .argument('<name>')
    .argument(...dataArgument)
    .option('--mac-length <bytes>', '16 unless given', wholeNumber)
    .action(
      asking(async ({ client, output, sources }, name: string, data: string | undefined, options: MacOptions) => {
        const given = { ...versionIn(options), ...(options.macLength !== undefined && { mac_length: options.macLength }) };
        const answer = await client.transit(options.mount).cmac(name, await base64From(data, sources), given);
        showOne(output, answer, answer.data.cmac, options);
      }),
    );
}

interface MacOptions extends Mounted {
  readonly algorithm?: string;
  readonly macLength?: number;
  readonly keyVersion?: number;
}

interface VerifyOptions extends SignedOptions {
  readonly signature?: string;
  readonly hmac?: string;
  readonly cmac?: string;
}

/** The one value that was asked for, or the whole answer where that is. */
function showOne(output: Output, answer: unknown, value: string, options: { readonly field?: string | undefined }): void {
  if (output.format === 'json' || options.field !== undefined) output.answer(answer, options);
  else {
    output.warnings(answer);
    output.line(value);
  }
}

async function base64From(data: string | undefined, sources: Sources): Promise<string> {
  return (await bytesFrom(data, sources)).toString('base64');
}

/** A text or a file, as the base64 that the interface takes. */
const encoded = (value: string, sources: Sources): string =>
  (value.startsWith('@') ? sources.file(value.slice(1)) : Buffer.from(value)).toString('base64');

const versionIn = ({ keyVersion }: { readonly keyVersion?: number }) =>
  keyVersion === undefined ? {} : { key_version: keyVersion };

async function dataOptions(options: UseOptions, sources: Sources): Promise<DataOptions> {
  return {
    ...versionIn(options),
    ...(options.context !== undefined && { context: encoded(options.context, sources) }),
    ...(options.associatedData !== undefined && { associated_data: encoded(options.associatedData, sources) }),
    ...(options.paddingScheme !== undefined && { padding_scheme: options.paddingScheme }),
  };
}

async function signOptions(options: SignedOptions, sources: Sources): Promise<SignOptions> {
  return {
    ...versionIn(options),
    ...(options.hashAlgorithm !== undefined && { hash_algorithm: options.hashAlgorithm }),
    ...(options.signatureAlgorithm !== undefined && { signature_algorithm: options.signatureAlgorithm }),
    ...(options.marshalingAlgorithm !== undefined && { marshaling_algorithm: options.marshalingAlgorithm }),
    ...(options.saltLength !== undefined && { salt_length: options.saltLength }),
    ...(options.prehashed === true && { prehashed: true }),
    ...(options.context !== undefined && { context: encoded(options.context, sources) }),
  };
}

async function proofIn(
  { signature, hmac, cmac }: VerifyOptions,
  sources: Sources,
): Promise<{ signature: string } | { hmac: string } | { cmac: string }> {
  const given = [signature, hmac, cmac].filter((one) => one !== undefined);
  const [only] = given;
  if (only === undefined || given.length > 1) throw new StartError('give one of --signature, --hmac and --cmac');
  const text = (await textFrom(only, sources)).trim();
  return signature !== undefined ? { signature: text } : hmac !== undefined ? { hmac: text } : { cmac: text };
}
