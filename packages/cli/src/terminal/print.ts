import { escapeControls, escapeInJson } from '@transitd/process';

// Everything that a command prints goes through these functions, because it may contain text of a server, which must not control the
// terminal: its control characters are shown as escapes.

/** Prints text and a line feed on standard output. */
export const print = (text: string): void => console.log(escapeControls(text));

/** Prints text and a line feed on standard error. */
export const printError = (text: string): void => console.error(escapeControls(text));

/** Prints JSON and a line feed; its strings keep their values. */
export const printJson = (value: unknown): void =>
  console.log(JSON.stringify(value, null, 2).split('\n').map(escapeInJson).join('\n'));

/** Prints the exact bytes, which scripts use; on a terminal as text, which ends with a line feed if `line` is set. */
export function printExact(content: string | Uint8Array, { line = false } = {}): void {
  if (process.stdout.isTTY !== true) process.stdout.write(content);
  else
    process.stdout.write(
      `${escapeControls(typeof content === 'string' ? content : Buffer.from(content).toString())}${line ? '\n' : ''}`,
    );
}
