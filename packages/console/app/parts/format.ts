// Numbers and times as the pages show them.

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

export const count = (value: number): string => whole.format(value);

/** Three significant digits at most: 0.21, 4.7, 38, 1,204. */
export function short(value: number): string {
  if (value >= 100) return whole.format(value);
  return String(Number(value.toFixed(value >= 10 ? 1 : 2)));
}

export function milliseconds(ms: number): string {
  return Math.abs(ms) < 1000 ? `${short(ms)} ms` : duration(ms / 1000);
}

/** The largest two units: `3 d 4 h`, `12 min 5 s`. */
export function duration(seconds: number): string {
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
  ] as const;
  if (seconds < 10) return `${short(Math.max(0, seconds))} s`;
  let rest = Math.floor(seconds);
  const parts: string[] = [];
  for (const [unit, size] of units) {
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    if (amount > 0 && parts.length < 2) parts.push(`${amount} ${unit}`);
  }
  return parts.join(' ');
}

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let amount = value;
  let unit = 0;
  while (amount >= 1024 && unit < units.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${short(amount)} ${units[unit]}`;
}

/** Local time of day; the page shows the last minutes. */
export const timeOfDay = (utcMs: number): string => new Date(utcMs).toLocaleTimeString('en-GB');

/** Local date and time, without locale guesses: 2026-11-23 04:05. */
export function moment(utc: string | number): string {
  const date = new Date(utc);
  if (Number.isNaN(date.getTime())) return '–';
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}
