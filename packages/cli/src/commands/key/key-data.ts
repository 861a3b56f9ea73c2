import { exitCode, StartError } from '@transitd/process';
import { type Command, Option } from 'commander';
import type { Runner } from '../../runner/runner.ts';
import { formatOf } from '../../session/environment.ts';
import { addFields, type FieldOptions, type Fields, fieldsIn, flag, text, whole } from '../../terminal/field-options.ts';
import { bytesFrom, type Sources, textFrom } from '../../terminal/input.ts';
import { fieldOption, formatOption, type Mounted, mountOption, wholeNumber } from '../../terminal/options.ts';
import type { Format, Output } from '../../terminal/output.ts';
import type { BulkOptions } from './key-rewrap.ts';

const boundFields = {
  context: text('text', 'context of a derived key: text or @file'),
  associated_data: text('text', 'additional authenticated data (AAD), required again to decrypt: text or @file'),
};
const cipherFields = {
  ...boundFields,
  padding_scheme: text('scheme', 'padding scheme of an RSA key: oaep or pkcs1v15'),
  hash_algorithm: text('name', 'hash of OAEP, for an RSA key (default: sha2-256)'),
};
const keyVersion = { key_version: whole('version', 'key version to use (default: latest)') };
const encryptFields = { ...cipherFields, ...keyVersion, type: text('type', 'key type, if this request creates the key') };
const rewrapFields = { ...boundFields, ...keyVersion };
const dataKeyFields = { ...cipherFields, bits: whole('count', 'size of a data key: 128, 256 or 512 (default: 256)') };
const verifyFields = {
  hash_algorithm: text('name', 'hash algorithm (default: sha2-256)'),
  signature_algorithm: text('name', 'signature scheme of an RSA key: pss or pkcs1v15'),
  marshaling_algorithm: text('name', 'signature encoding of an ECDSA key: asn1 or jws'),
  salt_length: text('length', 'salt length of a PSS signature'),
  prehashed: flag('the data is already hashed'),
  context: boundFields.context,
};
const signFields = { ...verifyFields, ...keyVersion };
const hmacFields = { ...keyVersion, algorithm: text('name', 'hash algorithm (default: sha2-256)') };
const cmacFields = { ...keyVersion, mac_length: whole('bytes', 'length of the CMAC in bytes, 4 to 16 (default: all 16)') };

const dataCommand = (key: Command, name: string, fields: FieldOptions): Command =>
  addFields(mountOption(fieldOption(key.command(name))), fields);

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
  dataCommand(key, 'encrypt', encryptFields)
    .description('encrypt data and print the ciphertext')
    .argument('<name>', 'name of the key')
    .argument(...dataArgument)
    .action(
      serverAction(async ({ client, output, sources }, name: string, data: string | undefined, options: Mounted) => {
        const request = encodedIn(fieldsIn(encryptFields, options), sources);
        const answer = await client.transit(options.mount).encrypt(name, await base64From(data, sources), request);
        printValue(output, answer, answer.data.ciphertext, options);
      }),
    );

  dataCommand(key, 'decrypt', cipherFields)
    .description('decrypt a ciphertext and write the original bytes')
    .argument('<name>', 'name of the key')
    .argument('[ciphertext]', 'ciphertext, @file, or - for standard input (default)')
    .action(
      serverAction(
        async ({ client, output, sources }, name: string, ciphertextArgument: string | undefined, options: Mounted) => {
          const ciphertext = (await textFrom(ciphertextArgument ?? '-', sources)).trim();
          const request = encodedIn(fieldsIn(cipherFields, options), sources);
          const answer = await client.transit(options.mount).decrypt(name, ciphertext, request);
          if (output.format === 'json' || options.field !== undefined) return output.answer(answer, options);
          output.warnings(answer);
          output.exact(Buffer.from(answer.data.plaintext, 'base64'));
        },
      ),
    );

  dataCommand(key, 'rewrap', rewrapFields)
    .addOption(new Option('--padding-scheme <scheme>').hideHelp())
    .description('re-encrypt a ciphertext with the latest key version, without revealing the plaintext')
    .argument('<name>', 'name of the key')
    .argument('[ciphertext]', 'ciphertext, @file, or - for standard input (default)')
    .option('--file <file>', 'rewrap JSON lines, each with ciphertext and, in base64, context and associated_data if it has them')
    .option('--out <file>', 'with --file: file to create; must not exist')
    .option('--resume', 'with --file: continue with <out>.part of an interrupted run')
    .action(
      serverAction(async (session, name: string, ciphertextArgument: string | undefined, options: RewrapOptions) => {
        const { client, output, sources } = session;
        checkRewrapOptions(options);
        const given = fieldsIn(rewrapFields, options);
        if (options.file !== undefined) {
          if (ciphertextArgument !== undefined) throw new StartError('use either a ciphertext or --file');
          if (given.context !== undefined || given.associated_data !== undefined)
            throw new StartError('--file takes no --context and no --associated-data: give each line its own in base64');
          const { rewrapFile } = await import('./key-rewrap.ts');
          return rewrapFile(session, name, { ...options, file: options.file });
        }
        const ciphertext = (await textFrom(ciphertextArgument ?? '-', sources)).trim();
        const answer = await client.transit(options.mount).rewrap(name, ciphertext, encodedIn(given, sources));
        printValue(output, answer, answer.data.ciphertext, options);
        return exitCode.ok;
      }),
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

const dataKeyCommand = (key: Command, name: string): Command =>
  dataCommand(key, name, dataKeyFields)
    .argument('<kind>', 'wrapped: return the ciphertext only; plaintext: also return the data key in base64')
    .argument('<name>', 'name of the key');

function dataKeyCommands(key: Command, { serverAction }: Runner): void {
  dataKeyCommand(key, 'datakey')
    .description('generate a data key, encrypted under a named key')
    .action(
      serverAction(async ({ client, output, sources }, kind: string, name: string, options: Mounted) => {
        const request = encodedIn(fieldsIn(dataKeyFields, options), sources);
        output.answer(await client.transit(options.mount).datakey(name, kindOf(kind), request), options);
      }),
    );

  dataKeyCommand(key, 'datakeys')
    .description('generate several data keys, encrypted under a named key')
    .argument('<count>', 'number of data keys, at most 1000', wholeNumber)
    .action(
      serverAction(async ({ client, output, sources }, kind: string, name: string, count: number, options: Mounted) => {
        const request = encodedIn(fieldsIn(dataKeyFields, options), sources);
        output.answer(await client.transit(options.mount).datakeys(name, kindOf(kind), count, request), options);
      }),
    );
}

function kindOf(kind: string): 'plaintext' | 'wrapped' {
  if (kind !== 'plaintext' && kind !== 'wrapped') throw new StartError('the kind of data key must be plaintext or wrapped');
  return kind;
}

function signatureCommands(key: Command, { serverAction }: Runner): void {
  dataCommand(key, 'sign', signFields)
    .description('sign data and print the signature')
    .argument('<name>', 'name of the key')
    .argument(...dataArgument)
    .action(
      serverAction(async ({ client, output, sources }, name: string, data: string | undefined, options: Mounted) => {
        const request = encodedIn(fieldsIn(signFields, options), sources);
        const answer = await client.transit(options.mount).sign(name, await base64From(data, sources), request);
        printValue(output, answer, answer.data.signature, options);
      }),
    );

  dataCommand(key, 'verify', verifyFields)
    .description('verify a signature, HMAC or CMAC; exits 0 if valid, 2 if not')
    .argument('<name>', 'name of the key')
    .argument(...dataArgument)
    .option('--signature <text>', 'signature to verify, or @file')
    .option('--hmac <text>', 'HMAC to verify, or @file')
    .option('--cmac <text>', 'CMAC to verify, or @file')
    .action(
      serverAction(async ({ client, output, sources }, name: string, data: string | undefined, options: VerifyOptions) => {
        const proof = await proofIn(options, sources);
        const request = encodedIn(fieldsIn(verifyFields, options), sources);
        const answer = await client.transit(options.mount).verify(name, await base64From(data, sources), proof, request);
        const { valid } = answer.data;
        if (output.format === 'json' || options.field !== undefined) output.answer(answer, options);
        else output.line(valid ? 'valid' : 'not valid');
        return valid ? exitCode.ok : exitCode.denied;
      }),
    );
}

function macCommands(key: Command, { serverAction }: Runner): void {
  dataCommand(key, 'hmac', hmacFields)
    .description('compute the HMAC of data')
    .argument('<name>', 'name of the key')
    .argument(...dataArgument)
    .action(
      serverAction(async ({ client, output, sources }, name: string, data: string | undefined, options: Mounted) => {
        const request = fieldsIn(hmacFields, options);
        const answer = await client.transit(options.mount).hmac(name, await base64From(data, sources), request);
        printValue(output, answer, answer.data.hmac, options);
      }),
    );

  dataCommand(key, 'cmac', cmacFields)
    .description('compute the CMAC of data')
    .argument('<name>', 'name of the key')
    .argument(...dataArgument)
    .action(
      serverAction(async ({ client, output, sources }, name: string, data: string | undefined, options: Mounted) => {
        const request = fieldsIn(cmacFields, options);
        const answer = await client.transit(options.mount).cmac(name, await base64From(data, sources), request);
        printValue(output, answer, answer.data.cmac, options);
      }),
    );
}

/** Refuses an option of the other cipher commands that rewrap has not, with the way that leads to the goal. */
function checkRewrapOptions({ paddingScheme }: RewrapOptions): void {
  if (paddingScheme !== undefined)
    throw new StartError('rewrap takes two padding schemes: use transitd write on the rewrap path to set them');
}

interface RewrapOptions extends Mounted, Partial<Omit<BulkOptions, 'mount'>> {
  readonly paddingScheme?: string;
}

interface VerifyOptions extends Mounted {
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

/** Returns the fields with their texts in base64. */
const encodedIn = <F extends Fields<Partial<typeof boundFields>>>(fields: F, sources: Sources): F => ({
  ...fields,
  ...(fields.context !== undefined && { context: encoded(fields.context, sources) }),
  ...(fields.associated_data !== undefined && { associated_data: encoded(fields.associated_data, sources) }),
});

async function proofIn(
  { signature, hmac, cmac }: VerifyOptions,
  sources: Sources,
): Promise<{ signature: string } | { hmac: string } | { cmac: string }> {
  const proofs = [signature, hmac, cmac].filter((one) => one !== undefined);
  const [proof] = proofs;
  if (proof === undefined || proofs.length > 1) throw new StartError('use exactly one of --signature, --hmac and --cmac');
  const given = (await textFrom(proof, sources)).trim();
  return signature !== undefined ? { signature: given } : hmac !== undefined ? { hmac: given } : { cmac: given };
}
