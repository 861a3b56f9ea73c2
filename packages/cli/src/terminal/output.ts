import { StartError } from '@transitd/process';
import { cellOf, harmless, type Rows, rowsOf, tableText } from './table.ts';

export type Format = 'table' | 'json';

/** What a command shows, on standard output; what it remarks, on standard error. */
export class Output {
  readonly format: Format;

  constructor(format: Format) {
    this.format = format;
  }

  line(text: string): void {
    this.raw(`${text}\n`);
  }

  raw(content: string | Uint8Array): void {
    process.stdout.write(content);
  }

  remark(text: string): void {
    process.stderr.write(`${harmless(text)}\n`);
  }

  /** In a table unless JSON is asked for. @param value - for JSON, where it is more than the rows */
  rows(rows: Rows, value: unknown = Object.fromEntries(rows)): void {
    if (this.format === 'json') this.json(value);
    else this.line(tableText(['Key', 'Value'], rows));
  }

  table(titles: readonly string[], rows: readonly (readonly unknown[])[], value: unknown): void {
    if (this.format === 'json') this.json(value);
    else this.line(tableText(titles, rows));
  }

  json(value: unknown): void {
    this.line(JSON.stringify(value, null, 2));
  }

  /** Names, one a line. */
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

  /** A whole answer, or one field of it, which then stands alone. @throws StartError when there is no such field */
  answer(answer: unknown, { field }: { readonly field?: string | undefined } = {}): void {
    this.warnings(answer);
    if (typeof answer === 'string') this.line(harmless(answer.trimEnd()));
    else if (field !== undefined) this.field(rowsOf(answer), field);
    else this.rows(rowsOf(answer), answer);
  }

  field(rows: Rows, name: string): void {
    const row = rows.find(([key]) => key === name);
    if (row === undefined) throw new StartError(`the answer has no field ${name}`);
    const [, value] = row;
    if (this.format === 'json') this.json(value);
    else this.raw(`${cellOf(value)}${process.stdout.isTTY === true ? '\n' : ''}`);
  }

  /** A change without a result: a sentence, or the answer where it has something to say. */
  done(answer: unknown, sentence: string): void {
    if (rowsOf(answer).length > 0 || (this.format === 'json' && answer !== undefined)) this.answer(answer);
    else {
      this.warnings(answer);
      if (this.format === 'table') this.line(harmless(sentence));
    }
  }

  /** They are part of the JSON. */
  warnings(answer: unknown): void {
    const warnings: unknown = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'warnings') : undefined;
    if (this.format === 'table' && Array.isArray(warnings))
      for (const warning of warnings) this.remark(`warning: ${String(warning)}`);
  }
}

/** Until every byte that was shown is out: the process ends right behind it. */
export const shown = (): Promise<unknown> =>
  Promise.all(
    [process.stdout, process.stderr].map((stream) => new Promise<void>((resolve) => stream.write('', () => resolve()))),
  );
