/** Formats whole seconds as Go does: `24h0m0s`, `1m30s`, `10s`. */
export function durationText(seconds: number): string {
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  if (hours > 0) return `${hours}h${minutes}m${rest}s`;
  return minutes > 0 ? `${minutes}m${rest}s` : `${rest}s`;
}

/** Formats milliseconds as seconds with at most three decimals: `4.6s`. */
export const secondsText = (ms: number): string => `${Math.round(ms) / 1000}s`;
