import { readFileSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import type { ReadStream, WriteStream } from 'node:tty';
import { escapeControls, StartError } from '@transitd/process';

/** Inputs of a command besides its arguments. */
export interface Sources {
  /** All of standard input. */
  readonly stdin: () => Promise<Buffer>;
  /** @throws StartError */
  readonly file: (path: string) => Buffer;
}

/** @throws StartError */
export function readFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new StartError(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
  }
}

/** Reads standard input and files of this process. Standard input can be read only once, so a second read is an error. */
export function processSources(): Sources {
  let wasRead = false;
  return {
    file: readFile,
    stdin: async () => {
      if (wasRead) throw new StartError('standard input can be read only once: use - for one argument only');
      wasRead = true;
      const chunks: Buffer[] = [];
      for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
      return Buffer.concat(chunks);
    },
  };
}

/** Resolves `-` to standard input and `@file` to a file, both without the final newline; returns any other argument unchanged. */
export async function textFrom(argument: string, { stdin, file }: Sources): Promise<string> {
  if (argument === '-') return (await stdin()).toString('utf8').replace(/\r?\n$/, '');
  if (argument.startsWith('@'))
    return file(argument.slice(1))
      .toString('utf8')
      .replace(/\r?\n$/, '');
  return argument;
}

/**
 * Reads a secret from standard input (`-`) or a file (`@file`). Refuses a plain argument: every user of the machine can read command
 * lines, and shells keep a history.
 * @param what - names the secret in the error, for example `a share`
 * @throws StartError
 */
export async function secretFrom(argument: string, what: string, sources: Sources): Promise<string> {
  refusePlainSecret(argument, what);
  return textFrom(argument, sources);
}

/** Refuses a secret passed as a plain argument. For commands that call the server before they read the secret. @throws StartError */
export function refusePlainSecret(argument: string, what: string): void {
  if (argument !== '-' && !argument.startsWith('@')) throw plainSecretError(what, '-', '@FILE');
}

/** Returns the error for a secret on the command line. @param alternatives - syntax for standard input and for a file */
export const plainSecretError = (what: string, ...[stdin, file]: readonly [stdin: string, file: string]): StartError =>
  new StartError(
    `${what} must not be on the command line, where other users and the shell history can expose it: ${waysToRead(stdin, file)}`,
  );

const waysToRead = (stdin: string, file: string): string =>
  `use ${stdin} to read it from standard input, or ${file} to read it from a file`;

/** Like `textFrom`, but returns all bytes, and reads standard input if there is no argument. */
export async function bytesFrom(argument: string | undefined, { stdin, file }: Sources): Promise<Buffer> {
  if (argument === undefined || argument === '-') return stdin();
  return argument.startsWith('@') ? file(argument.slice(1)) : Buffer.from(argument);
}

/** Enter. */
const lineEnds = new Set(['\r', '\n']);
/** Ctrl-C and Ctrl-D, which a terminal in raw mode delivers as characters. */
const interrupts = new Set(['\u0003', '\u0004']);

/** The parts of a terminal that the prompt uses; tests pass a fake. */
export interface Terminal {
  readonly input: Pick<ReadStream, 'isTTY' | 'setRawMode' | 'on' | 'off' | 'resume' | 'pause'>;
  readonly output: Pick<WriteStream, 'write'>;
}

const processTerminal = (): Terminal => ({ input: process.stdin as ReadStream, output: process.stderr as WriteStream });

/**
 * Prompts on the terminal and returns the typed line; does not echo it.
 * @throws StartError without a terminal (the message ends with `alternative`), or if the user interrupts
 */
export function promptHidden(
  question: string,
  alternative: string,
  { input, output }: Terminal = processTerminal(),
): Promise<string> {
  if (input.isTTY !== true) throw new StartError(`no terminal to prompt on: ${alternative}`);
  return new Promise((resolve, reject) => {
    let typed = '';
    // A character of several bytes may arrive in two chunks.
    const decoder = new StringDecoder('utf8');
    const finish = (complete: () => void): void => {
      input.off('data', onData);
      input.setRawMode(false);
      input.pause();
      output.write('\n');
      complete();
    };
    const onData = (chunk: Buffer): void => {
      for (const character of decoder.write(chunk)) {
        if (lineEnds.has(character)) {
          finish(() => resolve(typed));
          return;
        }
        if (interrupts.has(character)) {
          finish(() => reject(new StartError('interrupted')));
          return;
        }
        typed = character === '\u007f' || character === '\b' ? typed.slice(0, -1) : typed + character;
      }
    };
    // Before the question, after which a script types at once: the terminal would still show it.
    input.setRawMode(true);
    output.write(escapeControls(question));
    input.on('data', onData);
    input.resume();
  });
}
