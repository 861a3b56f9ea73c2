import type { Auth, Envelope, WrapInfo } from '@transitd/client';
import { escapeControls } from '@transitd/process';

/** Formats a value for a table cell: strings unchanged, lists of strings with commas, anything else as JSON. */
export function cellOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return 'n/a';
  if (Array.isArray(value) && value.every((item) => typeof item === 'string'))
    return value.length === 0 ? 'none' : value.join(', ');
  return JSON.stringify(value);
}

const gap = '    ';

/**
 * Formats rows as aligned columns below their titles. Text from a server cannot imitate a row: further lines of a cell in the last column
 * are indented, and line feeds in other columns are escaped.
 */
export function tableText(titles: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const last = titles.length - 1;
  const oneLine = (text: string, column: number): string => (column === last ? text : text.replaceAll('\n', '\\u{a}'));
  const cells = [
    titles,
    titles.map((title) => '-'.repeat(title.length)),
    ...rows.map((row) => row.map((value, column) => oneLine(escapeControls(cellOf(value)), column))),
  ];
  const widths = titles.slice(0, last).map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const indent = ' '.repeat(widths.reduce((sum, width) => sum + width + gap.length, 0)) || gap;
  const padded = (cell: string, column: number): string =>
    column === last ? cell.replaceAll('\n', `\n${indent}`) : cell.padEnd(widths[column] ?? 0);
  return cells.map((row) => row.map(padded).join(gap)).join('\n');
}

export type Rows = readonly (readonly [name: string, value: unknown])[];

const authRows = (auth: Auth): Rows => [
  ['token', auth.client_token],
  ['token_accessor', auth.accessor],
  ['token_duration', auth.lease_duration === 0 ? '∞' : `${auth.lease_duration}s`],
  ['token_renewable', auth.renewable],
  ['token_policies', auth.token_policies],
  ...Object.entries(auth.metadata ?? {}).map(([name, value]) => [`token_meta_${name}`, value] as const),
];

const wrapRows = (wrapped: WrapInfo): Rows => [
  ['wrapping_token', wrapped.token],
  ['wrapping_accessor', wrapped.accessor],
  ['wrapping_token_ttl', `${wrapped.ttl}s`],
  ['wrapping_token_creation_time', wrapped.creation_time],
  ['wrapping_token_creation_path', wrapped.creation_path],
  ...(wrapped.wrapped_accessor === undefined ? [] : [['wrapped_accessor', wrapped.wrapped_accessor] as const]),
];

/** Returns the rows to print for a response: its wrapping, its token, its data, or the response itself if it has no envelope. */
export function rowsOf(answer: unknown): Rows {
  if (typeof answer !== 'object' || answer === null) return [];
  const { wrap_info: wrapped, auth, data } = answer as Partial<Envelope>;
  if (wrapped) return wrapRows(wrapped);
  if (auth) return authRows(auth);
  const content = 'request_id' in answer ? data : answer;
  return typeof content === 'object' && content !== null ? Object.entries(content) : [];
}
