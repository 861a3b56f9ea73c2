import { StartError } from '@transitd/process';
import { print, printError, printExact, printJson } from './print.ts';
import { cellOf, type Rows, rowsOf, tableText } from './table.ts';

export type Format = 'table' | 'json';

/** Prints results on standard output and notices on standard error. */
export class Output {
  readonly format: Format;

  constructor(format: Format) {
    this.format = format;
  }

  line(text: string): void {
    print(text);
  }

  /** Prints the exact bytes, except on a terminal. */
  exact(content: Uint8Array): void {
    printExact(content);
  }

  notice(text: string): void {
    printError(text);
  }

  /** Prints a table or JSON. @param value - what to print as JSON, if it is more than the rows */
  rows(rows: Rows, value: unknown = Object.fromEntries(rows)): void {
    if (this.format === 'json') this.json(value);
    else this.line(tableText(['Key', 'Value'], rows));
  }

  table(titles: readonly string[], rows: readonly (readonly unknown[])[], value: unknown): void {
    if (this.format === 'json') this.json(value);
    else this.line(tableText(titles, rows));
  }

  json(value: unknown): void {
    printJson(value);
  }

  /** Prints names, one per line. */
  names(names: readonly string[]): void {
    if (this.format === 'json') this.json(names);
    else
      this.line(
        tableText(
          ['Keys'],
          names.map((name) => [name]),
        ),
      );
  }

  /** Prints a whole response, or one field of it. @throws StartError if the field does not exist */
  answer(answer: unknown, { field }: { readonly field?: string | undefined } = {}): void {
    this.warnings(answer);
    if (typeof answer === 'string') this.line(answer.trimEnd());
    else if (field !== undefined) this.field(rowsOf(answer), field);
    else this.rows(rowsOf(answer), answer);
  }

  field(rows: Rows, name: string): void {
    const row = rows.find(([key]) => key === name);
    if (row === undefined) throw new StartError(`the response has no field ${name}`);
    const [, value] = row;
    if (this.format === 'json') this.json(value);
    else printExact(cellOf(value), { line: true });
  }

  /** Prints the result of a change: the response if it has content, otherwise the sentence. */
  done(answer: unknown, sentence: string): void {
    if (rowsOf(answer).length > 0 || (this.format === 'json' && answer !== undefined)) this.answer(answer);
    else {
      this.warnings(answer);
      if (this.format === 'table') this.line(sentence);
    }
  }

  /** Prints the warnings of a response, unless they are part of the JSON output. */
  warnings(answer: unknown): void {
    const warnings: unknown = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'warnings') : undefined;
    if (this.format === 'table' && Array.isArray(warnings))
      for (const warning of warnings) this.notice(`warning: ${String(warning)}`);
  }
}

/** Resolves when all output is written, after which the process may exit. */
export const flushOutput = (): Promise<unknown> =>
  Promise.all(
    [process.stdout, process.stderr].map((stream) => new Promise<void>((resolve) => stream.write('', () => resolve()))),
  );
