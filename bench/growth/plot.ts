import type { Curve } from './curves.ts';

/** One line of a plot. Points with a y that is not positive are left out, because the axis is logarithmic. */
export interface Series {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface Plot {
  readonly title: string;
  readonly xLabel: string;
  readonly series: readonly Series[];
}

const [width, height] = [640, 360];
const area = { left: 64, right: 596, top: 44, bottom: 250 };
const legendTop = 308;
const colors = ['#1b6ac9', '#c2410c', '#15803d', '#7e22ce', '#a16207', '#0e7490'] as const;

/** Returns the plots of a curve as SVG texts: one for each unit of its measures, with a file name without extension as key. */
export function plotsOf({ size, points }: Curve): ReadonlyMap<string, string> {
  const names = Object.keys(points[0] ?? {}).filter((name) => name !== 'size');
  const unitOf = (name: string): string => name.slice(name.lastIndexOf(', ') + 2);
  const plots = new Map<string, string>();
  for (const unit of new Set(names.map(unitOf))) {
    const series = names
      .filter((name) => unitOf(name) === unit)
      .map((name) => ({
        name: name.slice(0, -unit.length - 2),
        points: points.map((point) => ({ x: point.size, y: point[name] ?? Number.NaN })),
      }));
    const file = `growth-${size}-${unit.replace('µ', 'u').replaceAll(' ', '-').toLowerCase()}`;
    plots.set(file, svg({ title: `${unit} by number of ${size}`, xLabel: `number of ${size}`, series }));
  }
  return plots;
}

/** Draws lines over two logarithmic axes as an SVG image, with a legend below. The output depends on nothing but the input. */
export function svg({ title, xLabel, series }: Plot): string {
  const shown = series.map(({ name, points }) => ({ name, points: points.filter(({ x, y }) => x > 0 && y > 0) }));
  const all = shown.flatMap(({ points }) => points);
  const [xs, ys] = [decades(all.map(({ x }) => x)), decades(all.map(({ y }) => y))];
  const toX = (x: number): number => round(area.left + scaled(x, xs) * (area.right - area.left));
  const toY = (y: number): number => round(area.bottom - scaled(y, ys) * (area.bottom - area.top));
  const vertical = ticks(xs).map((x) => [
    `<line class="g" x1="${toX(x)}" y1="${area.top}" x2="${toX(x)}" y2="${area.bottom}"/>`,
    `<text x="${toX(x)}" y="${area.bottom + 18}" text-anchor="middle">${x.toLocaleString('en')}</text>`,
  ]);
  const horizontal = ticks(ys).map((y) => [
    `<line class="g" x1="${area.left}" y1="${toY(y)}" x2="${area.right}" y2="${toY(y)}"/>`,
    `<text x="${area.left - 8}" y="${toY(y) + 4}" text-anchor="end">${y.toLocaleString('en')}</text>`,
  ]);
  const lines = shown.flatMap(({ name, points }, at) => {
    const color = colors[at % colors.length];
    const places = points.map(({ x, y }) => `${toX(x)},${toY(y)}`);
    const [column, row] = [at % 2, Math.floor(at / 2)];
    const [x, y] = [area.left + 280 * column, legendTop + 18 * row];
    return [
      `<polyline fill="none" stroke="${color}" stroke-width="2" points="${places.join(' ')}"/>`,
      ...points.map((point) => `<circle fill="${color}" cx="${toX(point.x)}" cy="${toY(point.y)}" r="3"/>`),
      `<rect fill="${color}" x="${x}" y="${y - 9}" width="10" height="10"/><text x="${x + 16}" y="${y}">${escaped(name)}</text>`,
    ];
  });
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    '<style>text{font:12px sans-serif;fill:#222}.g{stroke:#ddd}.t{font-size:15px}</style>',
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text class="t" x="${area.left}" y="24">${escaped(title)}</text>`,
    ...vertical.flat(),
    ...horizontal.flat(),
    `<text x="${(area.left + area.right) / 2}" y="${area.bottom + 36}" text-anchor="middle">${escaped(xLabel)}</text>`,
    ...lines,
    '</svg>',
  ].join('\n')}\n`;
}

interface Decades {
  /** Powers of ten below and above all values. */
  readonly from: number;
  readonly to: number;
}

function decades(values: readonly number[]): Decades {
  if (values.length === 0) return { from: 0, to: 1 };
  const from = Math.floor(Math.log10(Math.min(...values)));
  return { from, to: Math.max(from + 1, Math.ceil(Math.log10(Math.max(...values)))) };
}

const scaled = (value: number, { from, to }: Decades): number => (Math.log10(value) - from) / (to - from);
const ticks = ({ from, to }: Decades): number[] => Array.from({ length: to - from + 1 }, (_, at) => 10 ** (from + at));
const round = (value: number): number => Math.round(value * 10) / 10;
const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
