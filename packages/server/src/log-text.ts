/** Text that needs no quotes as a value. */
const plain = /^[\w.,:;/@+*()<>[\]-]+$/;
const control = /[\p{Cc}\p{Zl}\p{Zp}]/gu;

/**
 * Returns a line of the log as text: `2026-01-02T03:04:05.678Z [INFO]  started: version=0.1.0 node=n1`.
 * @param line - a JSON object with a final line end
 */
export function textLine(line: string): string {
  const { level, time, msg = '', ...fields } = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const detail = Object.entries(fields)
    .map(([name, value]) => ` ${escaped(name)}=${valueText(value)}`)
    .join('');
  return `${time} ${`[${String(level).toUpperCase()}]`.padEnd(7)} ${escaped(String(msg))}${detail === '' ? '' : `:${detail}`}\n`;
}

/** Values of log fields may come from other machines: no value may begin a line of its own, or send codes to a terminal. */
const valueText = (value: unknown): string =>
  typeof value === 'string' && plain.test(value) ? value : escaped(JSON.stringify(value));

const escaped = (text: string): string =>
  text.replace(control, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
