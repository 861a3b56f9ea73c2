const durationUnitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns the milliseconds of `10s`, `1h30m` or `150ms`, or of a bare number of seconds; undefined for any other text. */
export function parseDurationMs(text: string | number): number | undefined {
  if (typeof text === 'number' || /^\d+$/.test(text)) {
    const seconds = Number(text);
    return Number.isSafeInteger(seconds * 1000) && seconds >= 0 ? seconds * 1000 : undefined;
  }
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return undefined;
  let ms = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g))
    ms += Number(amount) * (durationUnitsMs[unit ?? ''] ?? 0);
  return Number.isSafeInteger(Math.round(ms)) ? Math.round(ms) : undefined;
}

const byteUnits: Readonly<Record<string, number>> = { '': 1, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/** Returns the bytes of `512MiB` or `64KiB`, or of a bare number; undefined for any other text. */
export function parseByteSize(text: string | number): number | undefined {
  const match = /^(\d+)\s*(B|KiB|MiB|GiB|TiB)?$/.exec(String(text));
  const bytes = Number(match?.[1]) * (byteUnits[match?.[2] ?? ''] ?? Number.NaN);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}
