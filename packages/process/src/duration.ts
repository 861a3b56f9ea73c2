const durationCharsMax = 64;

/**
 * Parses a duration: seconds as digits, days ("1d"), or Go's syntax (`time.ParseDuration`). Returns whole seconds, rounded down;
 * NaN for any other text.
 */
export function secondsOf(text: string): number {
  if (text === '' || text.length > durationCharsMax) return Number.NaN;
  if (/^[+-]?\d+$/.test(text)) return Number(text);
  if (/^[+-]?\d+d$/.test(text)) return Number(text.slice(0, -1)) * 86_400;
  return goDurationSeconds(text);
}

const nanosecondsPer: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

function goDurationSeconds(text: string): number {
  const sign = text.startsWith('-') ? -1 : 1;
  const part = /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/y;
  part.lastIndex = /^[+-]/.test(text) ? 1 : 0;
  if (part.lastIndex === text.length) return Number.NaN;
  let nanoseconds = 0n;
  while (part.lastIndex < text.length) {
    const [, whole = '', fraction = '', unit = ''] = part.exec(text) ?? [];
    const scale = nanosecondsPer[unit];
    if (scale === undefined || (whole === '' && fraction === '')) return Number.NaN;
    nanoseconds += BigInt(whole) * scale + (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
  }
  const seconds = Number(nanoseconds / 1_000_000_000n);
  // A duration above 0 must not become 0, which means "off" or "no limit".
  return seconds === 0 && nanoseconds > 0n ? Number.NaN : sign * seconds;
}
