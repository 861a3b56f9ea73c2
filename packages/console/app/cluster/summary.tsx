import { Badge } from '../parts/badge.tsx';
import { count } from '../parts/format.ts';
import type { ClusterView } from './members.ts';
import { activeOf, isServing, isVoting, tolerance, verdictOf } from './verdict.ts';

/** The state of the cluster in one line. */
export function Summary({ view }: { readonly view: ClusterView }) {
  const { word, tone } = verdictOf(view);
  const active = activeOf(view);
  const left = tolerance(view.members);
  const facts: readonly (readonly [string, string])[] = [
    ['Active node', active?.name ?? 'none'],
    ['Term', count(Math.max(0, ...view.members.map(({ report }) => report?.term ?? 0)))],
    ['Serving reads', `${view.members.filter(isServing).length} of ${view.members.length}`],
    ['May fail', left < 0 ? (isVoting(view.members) ? 'no majority' : 'none is left') : count(left)],
    ['Commit index', count(Math.max(0, ...view.members.map(({ report }) => report?.commit ?? 0)))],
  ];
  return (
    <div class="summary">
      <div>
        <span class="label">Cluster</span>
        <span class="fact" id="verdict">
          <Badge tone={tone}>{word}</Badge>
        </span>
      </div>
      {facts.map(([label, value]) => (
        <div key={label}>
          <span class="label">{label}</span>
          <span class="fact">{value}</span>
        </div>
      ))}
    </div>
  );
}
