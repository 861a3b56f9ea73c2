import { readFileSync } from 'node:fs';
import type { ReadStream, WriteStream } from 'node:tty';
import { StartError } from '@transitd/process';

/** From where a command takes what is not on its command line. */
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

/** This process's own. Standard input has one end, so a second reader is a mistake. */
export function processSources(): Sources {
  let isTaken = false;
  return {
    file: readFile,
    stdin: async () => {
      if (isTaken) throw new StartError('standard input can be read once, so - can stand in one place only');
      isTaken = true;
      const chunks: Buffer[] = [];
      for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
      return Buffer.concat(chunks);
    },
  };
}

/** `-` is standard input, `@file` a file, anything else is meant as it stands. A text of several lines loses its last line's end. */
export async function textFrom(argument: string, { stdin, file }: Sources): Promise<string> {
  if (argument === '-') return (await stdin()).toString('utf8').replace(/\r?\n$/, '');
  if (argument.startsWith('@'))
    return file(argument.slice(1))
      .toString('utf8')
      .replace(/\r?\n$/, '');
  return argument;
}

/**
 * A secret from standard input (`-`) or a file (`@file`). Never the argument itself: every user of the machine can read command lines, and shells
 * keep them.
 * @param what - names the secret in the refusal: `a share`
 * @throws StartError
 */
export async function secretFrom(argument: string, what: string, sources: Sources): Promise<string> {
  checkNotExposed(argument, what);
  return textFrom(argument, sources);
}

/** Refuses a secret that is the argument itself, for a command that asks the server something before it reads it. @throws StartError */
export function checkNotExposed(argument: string, what: string): void {
  if (argument !== '-' && !argument.startsWith('@')) throw exposed(what, '-', '@FILE');
}

/** The refusal of a secret on the command line. @param ways - to give it from standard input and from a file */
export const exposed = (what: string, ...[stdin, file]: readonly [string, string]): StartError =>
  new StartError(
    `${what} must not be on the command line, where other users and the shell's history have it: use ${stdin} to read it from standard input, or ${file} to read it from a file`,
  );

/** As `textFrom`, but bytes, and every one of them; standard input when there is no argument. */
export async function bytesFrom(argument: string | undefined, { stdin, file }: Sources): Promise<Buffer> {
  if (argument === undefined || argument === '-') return stdin();
  return argument.startsWith('@') ? file(argument.slice(1)) : Buffer.from(argument);
}

/** Enter; Ctrl-C and Ctrl-D, which a raw terminal hands over as characters. */
const lineEnds = new Set(['\r', '\n']);
const breaks = new Set(['\u0003', '\u0004']);

/** A terminal, or what stands for one in a test. */
export interface Terminal {
  readonly input: Pick<ReadStream, 'isTTY' | 'setRawMode' | 'on' | 'off' | 'resume' | 'pause'>;
  readonly output: Pick<WriteStream, 'write'>;
}

const processTerminal = (): Terminal => ({ input: process.stdin as ReadStream, output: process.stderr as WriteStream });

/**
 * What is typed at a terminal, without showing it.
 * @throws StartError when there is no terminal, with `instead` as the way out, or when it is broken off
 */
export function hiddenLine(question: string, instead: string, { input, output }: Terminal = processTerminal()): Promise<string> {
  if (input.isTTY !== true) throw new StartError(`there is no terminal to ask at: ${instead}`);
  return new Promise((resolve, reject) => {
    let typed = '';
    const end = (settle: () => void): void => {
      input.off('data', onData);
      input.setRawMode(false);
      input.pause();
      output.write('\n');
      settle();
    };
    const onData = (chunk: Buffer): void => {
      for (const character of chunk.toString('utf8')) {
        if (lineEnds.has(character)) {
          end(() => resolve(typed));
          return;
        }
        if (breaks.has(character)) {
          end(() => reject(new StartError('broken off')));
          return;
        }
        typed = character === '\u007f' || character === '\b' ? typed.slice(0, -1) : typed + character;
      }
    };
    output.write(question);
    input.setRawMode(true);
    input.on('data', onData);
    input.resume();
  });
}
