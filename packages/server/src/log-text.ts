import { escapeInJson } from '@transitd/process';

/** Text that needs no quotes as a value. */
const plain = /^[\w.,:;/@+*()<>[\]-]+$/;

/**
 * Returns a line of the log as text: `2026-01-02T03:04:05.678Z [INFO]  started: version=0.1.0 node=n1`.
 * @param line - a JSON object with a final line end
 */
export function textLine(line: string): string {
  const { level, time, msg = '', ...fields } = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const detail = Object.entries(fields)
    .map(([name, value]) => ` ${escapeInJson(name)}=${valueText(value)}`)
    .join('');
  return `${time} ${`[${String(level).toUpperCase()}]`.padEnd(7)} ${escapeInJson(String(msg))}${detail === '' ? '' : `:${detail}`}\n`;
}

/** Values of log fields may come from other machines: no value may begin a line of its own, or send codes to a terminal. */
const valueText = (value: unknown): string =>
  typeof value === 'string' && plain.test(value) ? value : escapeInJson(JSON.stringify(value));

/** Returns a line of JSON whose control characters are still escaped after it was parsed, as the printer of colored text does. */
export const withVisibleEscapes = (line: string): string =>
  line.replace(/\\([\\bfru])/g, (written, letter) => (letter === '\\' ? written : `\\${written}`));
