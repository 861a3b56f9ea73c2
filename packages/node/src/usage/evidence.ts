import { useKinds, type VersionUse } from '@transitd/transit-engine';
import type { CurrentUsage } from './usage-collector.ts';

/** Most versions that a refusal lists. */
const listedMax = 5;

/**
 * Returns why versions may not be taken away; undefined if it is known that nobody has used them within the time.
 * @param goes - returns whether a version would be taken away
 */
export function useFault(
  { sinceMs, unanswered, usage }: Pick<CurrentUsage, 'sinceMs' | 'unanswered' | 'usage'>,
  goes: (version: number) => boolean,
  { withinMs, nowMs }: { readonly withinMs: number; readonly nowMs: number },
): string | undefined {
  const fromMs = nowMs - withinMs;
  const used = [...usage.versions].filter(([version, { lastMs }]) => goes(version) && lastMs >= fromMs);
  if (used.length > 0) {
    const listed = used.slice(0, listedMax).map(([version, use]) => `version ${version} ${countsOf(use)}`);
    const further = used.length > listedMax ? `; and ${used.length - listedMax} more` : '';
    return `used within that time: ${listed.join('; ')}${further}`;
  }
  if (unanswered.length > 0) return `${unanswered.join(', ')} did not answer, so it is not known how the versions were used`;
  if (sinceMs === undefined) return 'some node does not count uses yet, so it is not known how the versions were used';
  if (sinceMs > fromMs) return `uses are counted since ${timeText(sinceMs)} only, which is not that long`;
  return undefined;
}

const countsOf = (use: VersionUse): string => {
  const counts = useKinds.filter((kind) => use[kind] > 0).map((kind) => `${use[kind]} ${kind}`);
  return `(${counts.join(', ')}; last at ${timeText(use.lastMs)})`;
};

const timeText = (ms: number): string => new Date(ms).toISOString();
