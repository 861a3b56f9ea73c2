import { exitCode, StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { DataKeys } from '../../files/file-cipher.ts';
import type { Runner } from '../../runner/runner.ts';
import type { Session } from '../../session/session.ts';
import { type Mounted, mountOption, serverOptions } from '../../terminal/options.ts';

interface FileOptions extends Mounted {
  readonly context?: string;
  readonly resume?: true;
}

const fileOptions = (command: Command): Command =>
  mountOption(serverOptions(command))
    .option('--context <text>', 'context of a derived key: text or @file')
    .option('--resume', 'continue with <output>.part of an interrupted run');

/** `key encrypt-file` and `decrypt-file`: files of any size. Only the data key goes to the service. */
export function keyFileCommands(key: Command, { serverAction }: Runner): void {
  fileOptions(key.command('encrypt-file'))
    .description('encrypt a file of any size with a new data key, which the key wraps')
    .argument('<name>', 'name of the key')
    .argument('<input>', 'file to encrypt')
    .argument('<output>', 'file to create; must not exist')
    .action(
      serverAction((session, name: string, input: string, output: string, options: FileOptions) =>
        convert(session, 'encryptFile', { name, input, output, options }),
      ),
    );

  fileOptions(key.command('decrypt-file'))
    .description('decrypt a file that encrypt-file has made; nothing of a damaged file is kept')
    .argument('<name>', 'name of the key')
    .argument('<input>', 'file to decrypt')
    .argument('<output>', 'file to create; must not exist')
    .action(
      serverAction((session, name: string, input: string, output: string, options: FileOptions) =>
        convert(session, 'decryptFile', { name, input, output, options }),
      ),
    );
}

interface Files {
  readonly name: string;
  readonly input: string;
  readonly output: string;
  readonly options: FileOptions;
}

async function convert(
  session: Session,
  direction: 'encryptFile' | 'decryptFile',
  { name, input, output, options }: Files,
): Promise<number> {
  const [files, { progressOn }, { DamagedStream }] = await Promise.all([
    import('../../files/file-cipher.ts'),
    import('../../terminal/progress.ts'),
    import('@transitd/client'),
  ]);
  if ([input, output].some((path) => path === '-' || path.startsWith('@')))
    throw new StartError('the input and the output are files: name their paths');
  const progress = progressOn();
  const startMs = performance.now();
  const task = {
    input,
    output,
    key: name,
    resume: options.resume === true,
    dataKeys: dataKeysOf(session, name, options),
    progress: (done: number, of: number) => progress.show(done, of, `${mebibytes(done)} of ${mebibytes(of)} MiB`),
  };
  try {
    const bytes = await files[direction](task).finally(progress.end);
    const seconds = (performance.now() - startMs) / 1000;
    session.output.rows([
      ['output', output],
      ['bytes', bytes],
      ['seconds', Number(seconds.toFixed(1))],
    ]);
    return exitCode.ok;
  } catch (error) {
    if (error instanceof DamagedStream) throw new StartError(`${input}: ${error.message}`);
    throw error;
  }
}

const mebibytes = (bytes: number): number => Math.floor(bytes / 2 ** 20);

function dataKeysOf({ client, sources }: Session, name: string, { mount, context }: FileOptions): DataKeys {
  const keys = client.transit(mount);
  const text = context?.startsWith('@') === true ? sources.file(context.slice(1)) : context;
  const more = text === undefined ? {} : { context: Buffer.from(text).toString('base64') };
  return {
    create: async () => {
      const { plaintext = '', ciphertext } = (await keys.datakey(name, 'plaintext', { bits: 256, ...more })).data;
      return { plaintext: Buffer.from(plaintext, 'base64'), wrapped: ciphertext };
    },
    open: async (wrapped) => {
      try {
        return Buffer.from((await keys.decrypt(name, wrapped, more)).data.plaintext, 'base64');
      } catch (error) {
        const { RefusedError } = await import('@transitd/client');
        if (error instanceof RefusedError && error.status === 400)
          throw new StartError(`the key ${name} does not open the data key of the file`);
        throw error;
      }
    },
  };
}
