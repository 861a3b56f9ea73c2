import type { Curve } from './curves.ts';

export interface GrowthRun {
  readonly title: string;
  readonly date: string;
  readonly machine: string;
  readonly settings: Readonly<Record<string, number | string>>;
  readonly loadBefore: number;
  readonly loadAfter: number;
  readonly curves: readonly Curve[];
}

/** Returns the curves as Markdown: a table each, with a row per measure and a column per size. */
export function markdown({ title, date, machine, settings, loadBefore, loadAfter, curves }: GrowthRun): string {
  const given = Object.entries(settings).map(([name, value]) => `${name} ${value.toLocaleString('en')}`);
  const head = [
    `# ${title}, ${date}`,
    '',
    `${machine}; load average ${loadBefore.toFixed(2)} before, ${loadAfter.toFixed(2)} after; ${given.join(', ')}`,
  ];
  return [...head, ...curves.flatMap((curve) => ['', ...table(curve)])].join('\n');
}

function table({ size, points }: Curve): string[] {
  const [first] = points;
  if (first === undefined) return [];
  const measures = Object.keys(first).filter((name) => name !== 'size');
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [
    row([size, ...points.map((point) => point.size.toLocaleString('en'))]),
    row(['---', ...points.map(() => '---:')]),
    ...measures.map((name) => row([name, ...points.map((point) => shown(point[name] ?? Number.NaN))])),
  ];
}

/** Returns a number with about three significant digits. */
const shown = (value: number): string =>
  value.toLocaleString('en', value < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 });
