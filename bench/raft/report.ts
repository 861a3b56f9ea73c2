import { loadavg } from 'node:os';
import { machine } from '../report.ts';

export interface Row {
  readonly measure: string;
  readonly result: string;
}

/** Returns Markdown: machine and versions, the table, and remarks. */
export function report(title: string, rows: readonly Row[], remarks: readonly string[], loadBefore: readonly number[]): string {
  const load = (values: readonly number[]): string => values.map((value) => value.toFixed(1)).join(' / ');
  return [
    `# ${title}`,
    '',
    `- Date: ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC`,
    `- Machine: ${machine()}`,
    `- Load average (1 / 5 / 15 min): before ${load(loadBefore)}, after ${load(loadavg())}`,
    '',
    '| measure | result |',
    '| --- | --- |',
    ...rows.map(({ measure, result }) => `| ${measure} | ${result} |`),
    '',
    ...remarks.map((remark) => `- ${remark}`),
  ].join('\n');
}

/** Rounds to a whole number, with thousands separators. */
export const whole = (value: number): string => Math.round(value).toLocaleString('en-US');
export const oneDecimal = (value: number): string => value.toFixed(1);
