import { short } from './format.ts';

export interface Line {
  readonly name: string;
  /** Index of the line's color and dash pattern. */
  readonly style: number;
  /** Oldest first; undefined where nothing is known. */
  readonly values: readonly (number | undefined)[];
}

export interface PlotProps {
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly Line[];
  /** How many values the whole width shows. */
  readonly width: number;
  /** The axis ends here at least, so that noise near zero stays flat. */
  readonly least: number;
}

const size = { width: 240, height: 64 };

/** A small plot of one metric, with a line for each node. Its newest values are also text, for readers who do not see the lines. */
export function Plot({ title, unit, lines, width, least }: PlotProps) {
  const known = lines.flatMap(({ values }) => values.filter((value) => value !== undefined));
  const top = niceTop(Math.max(least, ...known));
  const x = (index: number, length: number): number => size.width * (1 - (length - 1 - index) / (width - 1));
  const y = (value: number): number => size.height - 2 - (value / top) * (size.height - 6);
  return (
    <figure class="plot">
      <figcaption>
        <span>{title}</span>
        <span class="muted">
          axis 0 to {short(top)} {unit}
        </span>
      </figcaption>
      <svg viewBox={`0 0 ${size.width} ${size.height}`} preserveAspectRatio="none" aria-hidden="true">
        <path class="grid" d={`M0 ${y(0)}H${size.width}M0 ${y(top / 2)}H${size.width}M0 ${y(top)}H${size.width}`} />
        {lines.map(({ name, style, values }) => (
          <path key={name} class={`line tone-${style % 6}`} d={pathOf(values, { x, y })} />
        ))}
      </svg>
      <ul class="readings">
        {lines.map(({ name, style, values }) => (
          <li key={name}>
            <i class={`dot tone-${style % 6}`} aria-hidden="true" />
            <span class="muted">{name}</span> {reading(values.at(-1))}
          </li>
        ))}
      </ul>
    </figure>
  );
}

const reading = (value: number | undefined): string => (value === undefined ? '–' : short(value));

interface Scale {
  readonly x: (index: number, length: number) => number;
  readonly y: (value: number) => number;
}

/** Returns the path through the known values, with gaps where nothing is known. */
function pathOf(values: readonly (number | undefined)[], { x, y }: Scale): string {
  let isOpen = false;
  return values
    .map((value, index) => {
      if (value === undefined) {
        isOpen = false;
        return '';
      }
      const command = isOpen ? 'L' : 'M';
      isOpen = true;
      return `${command}${x(index, values.length).toFixed(1)} ${y(value).toFixed(1)}`;
    })
    .join('');
}

/** Returns the next of 1, 2, 5, 10, 20, … that is not smaller. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-6)));
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power;
}
