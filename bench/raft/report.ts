import { cpus, loadavg, totalmem } from 'node:os';

/** One row: the measurement, and its target. */
export interface Row {
  readonly measure: string;
  readonly result: string;
  readonly must: string;
  readonly good: string;
}

/** Returns Markdown: machine and versions, the table, and remarks. */
export function report(title: string, rows: readonly Row[], remarks: readonly string[], loadBefore: readonly number[]): string {
  const [cpu] = cpus();
  const load = (values: readonly number[]): string => values.map((value) => value.toFixed(1)).join(' / ');
  return [
    `# ${title}`,
    '',
    `- Date: ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC`,
    `- Machine: ${cpu?.model ?? 'unknown CPU'}, ${cpus().length} cores, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, ` +
      `${process.platform} ${process.arch}`,
    `- Node ${process.version}`,
    `- Load average (1 / 5 / 15 min): before ${load(loadBefore)}, after ${load(loadavg())}`,
    '',
    '| measure | measured | must | good |',
    '| --- | --- | --- | --- |',
    ...rows.map(({ measure, result, must, good }) => `| ${measure} | ${result} | ${must} | ${good} |`),
    '',
    ...remarks.map((remark) => `- ${remark}`),
  ].join('\n');
}

/** Rounds to a whole number, with thousands separators. */
export const whole = (value: number): string => Math.round(value).toLocaleString('en-US');
export const oneDecimal = (value: number): string => value.toFixed(1);
export const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
