import type { Json } from '../api/json.ts';
import { usePoll } from '../api/use-poll.ts';
import { Badge } from '../parts/badge.tsx';
import { count, milliseconds } from '../parts/format.ts';
import { type Connection, connectionTone, replicationIn, roleOf } from './replication.ts';

const everyMs = 2000;
const statusIn = ({ data }: Json) => replicationIn(data);

/** The disaster-recovery replication of the cluster, live. A node tells it without a token. Nothing while there is none. */
export function Replication() {
  const { value: view, error } = usePoll('sys/replication/dr/status', everyMs, statusIn);
  if (view === undefined || view.mode === 'disabled') return null;
  const { word, tone } = roleOf(view);
  return (
    <section aria-labelledby="replication-title" class="replication">
      <h2 id="replication-title">Disaster recovery</h2>
      <p>
        This cluster is <Badge tone={tone}>{word}</Badge>
        {view.epoch !== undefined && ` in epoch ${count(view.epoch)}`}
        {view.position !== undefined && `, at position ${count(view.position)}`}.
        {word === 'secondary' && ' It answers requests only after a promotion.'}
      </p>
      {error !== undefined && <p class="muted">The figures are the last ones that this node sent.</p>}
      {view.connections === undefined ? (
        <p class="muted">Only the active node knows the connections to other clusters: open its console.</p>
      ) : view.connections.length === 0 ? (
        <p class="muted">No other cluster has joined the set.</p>
      ) : (
        <Connections connections={view.connections} />
      )}
    </section>
  );
}

const titles = ['Position', 'Entries behind', 'Time behind', 'Last heartbeat'] as const;

const Connections = ({ connections }: { readonly connections: readonly Connection[] }) => (
  <table class="cards">
    <thead>
      <tr>
        <th scope="col">Cluster</th>
        <th scope="col">Connection</th>
        {titles.map((title) => (
          <th key={title} scope="col" class="number">
            {title}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {connections.map((connection) => (
        <tr key={connection.name}>
          <th scope="row">
            <span class="name">{connection.name}</span>
          </th>
          <td data-title="Connection">
            <Badge tone={connectionTone(connection)}>{connection.status || 'unknown'}</Badge>
          </td>
          {figuresOf(connection).map((figure, index) => (
            <td key={titles[index]} data-title={titles[index]} class="number">
              {figure}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);

const figuresOf = ({ position, lagEntries, lagMs, heartbeatMs }: Connection): readonly string[] => [
  position === undefined ? '–' : count(position),
  lagEntries === undefined ? '–' : count(lagEntries),
  lagMs === undefined ? '–' : milliseconds(lagMs),
  heartbeatMs === undefined ? '–' : milliseconds(heartbeatMs),
];
