const unitSeconds: Readonly<Record<string, number>> = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600, d: 86_400 };

/** Seconds of `90`, `1h30m` or `2d`; undefined when the text is nothing of the kind. */
export function durationSeconds(text: string): number | undefined {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  if (text.length > 64 || !/^(?:\d+(?:\.\d+)?(?:ns|us|ms|s|m|h|d))+$/.test(text)) return undefined;
  let seconds = 0;
  for (const [, amount, unit] of text.matchAll(/([\d.]+)([a-z]+)/g)) seconds += Number(amount) * (unitSeconds[unit ?? ''] ?? 0);
  return seconds;
}
