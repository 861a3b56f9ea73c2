import { duration, timeOfDay } from '../parts/format.ts';
import type { Member } from './members.ts';
import { reignsOf } from './reigns.ts';

const shownMax = 8;
const size = { width: 1000, height: 22 };

/** Shows which node led when: a bar in the colors of the nodes, and the newest terms as a list. */
export function Timeline({
  members,
  styleOf,
}: {
  readonly members: readonly Member[];
  readonly styleOf: (name: string) => number;
}) {
  const reigns = reignsOf(members).slice(-shownMax);
  const nowMs = Math.max(...members.map(({ report }) => report?.utcMs ?? 0));
  const first = reigns[0];
  if (first === undefined) return <p class="muted">No leader is known yet.</p>;
  const spanMs = Math.max(1, nowMs - first.fromUtcMs);
  const x = (utcMs: number): number => (size.width * (utcMs - first.fromUtcMs)) / spanMs;
  return (
    <>
      <svg class="timeline" viewBox={`0 0 ${size.width} ${size.height}`} preserveAspectRatio="none" aria-hidden="true">
        {reigns.map(({ term, leader, fromUtcMs }, index) => {
          const from = x(fromUtcMs);
          const until = x(reigns[index + 1]?.fromUtcMs ?? nowMs);
          return (
            <rect
              key={term}
              class={`bar tone-${styleOf(leader) % 6}`}
              x={from}
              y={0}
              width={Math.max(2, until - from - 2)}
              height={size.height}
            />
          );
        })}
      </svg>
      <ol class="terms" reversed>
        {reigns.toReversed().map(({ term, leader, fromUtcMs }, index) => {
          const endMs = index === 0 ? nowMs : (reigns[reigns.length - index]?.fromUtcMs ?? nowMs);
          return (
            <li key={term}>
              <i class={`dot tone-${styleOf(leader) % 6}`} aria-hidden="true" />
              <strong>{leader}</strong> leads in term {term} from <time>{timeOfDay(fromUtcMs)}</time>
              <span class="muted">
                {' '}
                for {duration((endMs - fromUtcMs) / 1000)}
                {index === 0 ? ' so far' : ''}
              </span>
            </li>
          );
        })}
      </ol>
    </>
  );
}
