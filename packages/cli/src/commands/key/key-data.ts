import type { DataOptions, SignOptions } from '@transitd/client';
import { exitCode, StartError } from '@transitd/process';
import { type Command, Option } from 'commander';
import type { Runner } from '../../runner/runner.ts';
import { formatOf } from '../../session/environment.ts';
import { bytesFrom, type Sources, textFrom } from '../../terminal/input.ts';
import { fieldOption, formatOption, type Mounted, mountOption, wholeNumber } from '../../terminal/options.ts';
import type { Format, Output } from '../../terminal/output.ts';
import type { BulkOptions } from './key-rewrap.ts';

interface CipherOptions extends Mounted {
  readonly context?: string;
  readonly associatedData?: string;
  readonly keyVersion?: number;
  readonly paddingScheme?: string;
  readonly hashAlgorithm?: string;
}

const boundOptions = (command: Command): Command =>
  mountOption(fieldOption(command))
    .option('--context <text>', 'context of a derived key: text or @file')
    .option('--associated-data <text>', 'additional authenticated data (AAD), required again to decrypt: text or @file');
const cipherOptions = (command: Command): Command =>
  boundOptions(command)
    .option('--padding-scheme <scheme>', 'padding scheme of an RSA key: oaep or pkcs1v15')
    .option('--hash-algorithm <name>', 'hash of OAEP, for an RSA key (default: sha2-256)');
const keyVersionOption = (command: Command): Command =>
  command.option('--key-version <version>', 'key version to use (default: latest)', wholeNumber);

interface SignedOptions extends Mounted {
  readonly hashAlgorithm?: string;
  readonly signatureAlgorithm?: string;
  readonly marshalingAlgorithm?: string;
  readonly saltLength?: string;
  readonly prehashed?: true;
  readonly context?: string;
  readonly keyVersion?: number;
}

const signatureOptions = (command: Command): Command =>
  mountOption(fieldOption(command))
    .option('--hash-algorithm <name>', 'hash algorithm (default: sha2-256)')
    .option('--signature-algorithm <name>', 'signature scheme of an RSA key: pss or pkcs1v15')
    .option('--marshaling-algorithm <name>', 'signature encoding of an ECDSA key: asn1 or jws')
    .option('--salt-length <length>', 'salt length of a PSS signature')
    .option('--prehashed', 'the data is already hashed')
    .option('--context <text>', 'context of a derived key: text or @file');

const dataArgument = ['[data]', 'text, @file, or - for standard input (default)'] as const;

/** `key encrypt` and similar commands: they take and print bytes, and do the base64 encoding. */
export function keyDataCommands(key: Command, runner: Runner): void {
  cipherCommands(key, runner);
  countVersionsCommand(key, runner);
  dataKeyCommands(key, runner);
  signatureCommands(key, runner);
  macCommands(key, runner);
}

function cipherCommands(key: Command, { serverAction }: Runner): void {
  keyVersionOption(cipherOptions(key.command('encrypt')))
    .description('encrypt data and print the ciphertext')
    .argument('<name>', 'name of the key')
    .argument(...dataArgument)
    .option('--type <type>', 'key type, if this request creates the key')
    .action(
      serverAction(
        async (
          { client, output, sources },
          name: string,
          data: string | undefined,
          options: CipherOptions & { type?: string },
        ) => {
          const more = options.type === undefined ? {} : { type: options.type };
          const answer = await client
            .transit(options.mount)
            .encrypt(name, await base64From(data, sources), { ...(await dataOptions(options, sources)), ...more });
          printValue(output, answer, answer.data.ciphertext, options);
        },
      ),
    );

  cipherOptions(key.command('decrypt'))
    .description('decrypt a ciphertext and write the original bytes')
    .argument('<name>', 'name of the key')
    .argument('[ciphertext]', 'ciphertext, @file, or - for standard input (default)')
    .action(
      serverAction(
        async ({ client, output, sources }, name: string, ciphertextArgument: string | undefined, options: CipherOptions) => {
          const ciphertext = (await textFrom(ciphertextArgument ?? '-', sources)).trim();
          const answer = await client.transit(options.mount).decrypt(name, ciphertext, await dataOptions(options, sources));
          if (output.format === 'json' || options.field !== undefined) return output.answer(answer, options);
          output.warnings(answer);
          output.exact(Buffer.from(answer.data.plaintext, 'base64'));
        },
      ),
    );

  keyVersionOption(boundOptions(key.command('rewrap')))
    .addOption(new Option('--padding-scheme <scheme>').hideHelp())
    .description('re-encrypt a ciphertext with the latest key version, without revealing the plaintext')
    .argument('<name>', 'name of the key')
    .argument('[ciphertext]', 'ciphertext, @file, or - for standard input (default)')
    .option('--file <file>', 'rewrap JSON lines, each with ciphertext and, in base64, context and associated_data if it has them')
    .option('--out <file>', 'with --file: file to create; must not exist')
    .option('--resume', 'with --file: continue with <out>.part of an interrupted run')
    .action(
      serverAction(
        async (session, name: string, ciphertextArgument: string | undefined, options: CipherOptions & Partial<BulkOptions>) => {
          const { client, output, sources } = session;
          checkRewrapOptions(options);
          if (options.file !== undefined) {
            if (ciphertextArgument !== undefined) throw new StartError('use either a ciphertext or --file');
            if (options.context !== undefined || options.associatedData !== undefined)
              throw new StartError('--file takes no --context and no --associated-data: give each line its own in base64');
            const { rewrapFile } = await import('./key-rewrap.ts');
            return rewrapFile(session, name, { ...options, file: options.file });
          }
          const ciphertext = (await textFrom(ciphertextArgument ?? '-', sources)).trim();
          const request = await dataOptions(options, sources);
          const answer = await client.transit(options.mount).rewrap(name, ciphertext, request);
          printValue(output, answer, answer.data.ciphertext, options);
          return exitCode.ok;
        },
      ),
    );
}

/** `key count-versions`: shows whether ciphertexts of old versions are left, before these are deleted. */
function countVersionsCommand(key: Command, { localAction }: Runner): void {
  key
    .command('count-versions')
    .description('count the ciphertexts of each key version in a file of JSON lines, without a server')
    .argument('<file>', 'JSON lines, each with ciphertext')
    .option('--min-version <version>', 'exit 2 if a ciphertext has an older version', wholeNumber)
    .addOption(formatOption())
    .action(
      localAction(async (file: string, { minVersion = 0, format }: { minVersion?: number; format?: Format }) => {
        const [{ countVersions }, { Output }] = await Promise.all([
          import('../../files/rewrap-lines.ts'),
          import('../../terminal/output.ts'),
        ]);
        const counts = await countVersions(file);
        new Output(formatOf(format, process.env)).table(['Version', 'Ciphertexts'], counts, Object.fromEntries(counts));
        return counts.some(([version]) => version < minVersion) ? exitCode.denied : exitCode.ok;
      }),
    );
}

const dataKeyOptions = (command: Command): Command =>
  cipherOptions(command)
    .argument('<kind>', 'wrapped: return the ciphertext only; plaintext: also return the data key in base64')
    .argument('<name>', 'name of the key')
    .option('--bits <count>', 'size of a data key: 128, 256 or 512 (default: 256)', wholeNumber);

type DataKeyOptions = CipherOptions & { readonly bits?: number };

function dataKeyCommands(key: Command, { serverAction }: Runner): void {
  dataKeyOptions(key.command('datakey'))
    .description('generate a data key, encrypted under a named key')
    .action(
      serverAction(async ({ client, output, sources }, kind: string, name: string, options: DataKeyOptions) => {
        const request = await dataKeyRequest(options, sources);
        output.answer(await client.transit(options.mount).datakey(name, kindOf(kind), request), options);
      }),
    );

  dataKeyOptions(key.command('datakeys'))
    .description('generate several data keys, encrypted under a named key')
    .argument('<count>', 'number of data keys, at most 1000', wholeNumber)
    .action(
      serverAction(async ({ client, output, sources }, kind: string, name: string, count: number, options: DataKeyOptions) => {
        const request = await dataKeyRequest(options, sources);
        output.answer(await client.transit(options.mount).datakeys(name, kindOf(kind), count, request), options);
      }),
    );
}

function kindOf(kind: string): 'plaintext' | 'wrapped' {
  if (kind !== 'plaintext' && kind !== 'wrapped') throw new StartError('the kind of data key must be plaintext or wrapped');
  return kind;
}

const dataKeyRequest = async (options: DataKeyOptions, sources: Sources) => ({
  ...(await dataOptions(options, sources)),
  ...(options.bits !== undefined && { bits: options.bits }),
});

function signatureCommands(key: Command, { serverAction }: Runner): void {
  keyVersionOption(signatureOptions(key.command('sign')))
    .description('sign data and print the signature')
    .argument('<name>', 'name of the key')
    .argument(...dataArgument)
    .action(
      serverAction(async ({ client, output, sources }, name: string, data: string | undefined, options: SignedOptions) => {
        const request = await signOptions(options, sources);
        const answer = await client.transit(options.mount).sign(name, await base64From(data, sources), request);
        printValue(output, answer, answer.data.signature, options);
      }),
    );

  signatureOptions(key.command('verify'))
    .description('verify a signature, HMAC or CMAC; exits 0 if valid, 2 if not')
    .argument('<name>', 'name of the key')
    .argument(...dataArgument)
    .option('--signature <text>', 'signature to verify, or @file')
    .option('--hmac <text>', 'HMAC to verify, or @file')
    .option('--cmac <text>', 'CMAC to verify, or @file')
    .action(
      serverAction(async ({ client, output, sources }, name: string, data: string | undefined, options: VerifyOptions) => {
        const proof = await proofIn(options, sources);
        const request = await signOptions(options, sources);
        const answer = await client.transit(options.mount).verify(name, await base64From(data, sources), proof, request);
        const { valid } = answer.data;
        if (output.format === 'json' || options.field !== undefined) output.answer(answer, options);
        else output.line(valid ? 'valid' : 'not valid');
        return valid ? exitCode.ok : exitCode.denied;
      }),
    );
}

function macCommands(key: Command, { serverAction }: Runner): void {
  keyVersionOption(mountOption(fieldOption(key.command('hmac'))))
    .description('compute the HMAC of data')
    .argument('<name>', 'name of the key')
    .argument(...dataArgument)
    .option('--algorithm <name>', 'hash algorithm (default: sha2-256)')
    .action(
      serverAction(async ({ client, output, sources }, name: string, data: string | undefined, options: MacOptions) => {
        const request = { ...versionIn(options), ...(options.algorithm !== undefined && { algorithm: options.algorithm }) };
        const answer = await client.transit(options.mount).hmac(name, await base64From(data, sources), request);
        printValue(output, answer, answer.data.hmac, options);
      }),
    );

  keyVersionOption(mountOption(fieldOption(key.command('cmac'))))
    .description('compute the CMAC of data')
    .argument('<name>', 'name of the key')
    .argument(...dataArgument)
    .option('--mac-length <bytes>', 'length of the CMAC in bytes, 4 to 16 (default: all 16)', wholeNumber)
    .action(
      serverAction(async ({ client, output, sources }, name: string, data: string | undefined, options: MacOptions) => {
        const request = { ...versionIn(options), ...(options.macLength !== undefined && { mac_length: options.macLength }) };
        const answer = await client.transit(options.mount).cmac(name, await base64From(data, sources), request);
        printValue(output, answer, answer.data.cmac, options);
      }),
    );
}

/** Refuses an option of the other cipher commands that rewrap has not, with the way that leads to the goal. */
function checkRewrapOptions({ paddingScheme }: CipherOptions): void {
  if (paddingScheme !== undefined)
    throw new StartError('rewrap takes two padding schemes: use transitd write on the rewrap path to set them');
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

/** Prints the value alone, or the whole response with `--format json` or `--field`. */
function printValue(output: Output, answer: unknown, value: string, options: { readonly field?: string | undefined }): void {
  if (output.format === 'json' || options.field !== undefined) output.answer(answer, options);
  else {
    output.warnings(answer);
    output.line(value);
  }
}

async function base64From(data: string | undefined, sources: Sources): Promise<string> {
  return (await bytesFrom(data, sources)).toString('base64');
}

/** Encodes a text or a file in base64, as the API takes it. */
const encoded = (value: string, sources: Sources): string =>
  (value.startsWith('@') ? sources.file(value.slice(1)) : Buffer.from(value)).toString('base64');

const versionIn = ({ keyVersion }: { readonly keyVersion?: number }) =>
  keyVersion === undefined ? {} : { key_version: keyVersion };

async function dataOptions(options: CipherOptions, sources: Sources): Promise<DataOptions> {
  return {
    ...versionIn(options),
    ...(options.context !== undefined && { context: encoded(options.context, sources) }),
    ...(options.associatedData !== undefined && { associated_data: encoded(options.associatedData, sources) }),
    ...(options.paddingScheme !== undefined && { padding_scheme: options.paddingScheme }),
    ...(options.hashAlgorithm !== undefined && { hash_algorithm: options.hashAlgorithm }),
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
  const proofs = [signature, hmac, cmac].filter((one) => one !== undefined);
  const [proof] = proofs;
  if (proof === undefined || proofs.length > 1) throw new StartError('use exactly one of --signature, --hmac and --cmac');
  const text = (await textFrom(proof, sources)).trim();
  return signature !== undefined ? { signature: text } : hmac !== undefined ? { hmac: text } : { cmac: text };
}
