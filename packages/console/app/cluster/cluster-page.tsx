import { useRef } from 'preact/hooks';
import { useStream } from '../api/use-stream.ts';
import { Note } from '../parts/badge.tsx';
import { Plot } from '../parts/plot.tsx';
import { LogTable } from './log-table.tsx';
import { type ClusterView, clusterViewIn } from './members.ts';
import { NodeTable, Terms } from './node-table.tsx';
import { Replication } from './replication-state.tsx';
import { type Metric, type Point, withView } from './samples.ts';
import { Summary } from './summary.tsx';
import { Timeline } from './timeline.tsx';

/** The plots are at least as wide as one minute. */
const shownMin = 60;

const plots: readonly { readonly metric: Metric; readonly title: string; readonly unit: string; readonly least: number }[] = [
  { metric: 'requests', title: 'Requests', unit: '/s', least: 10 },
  { metric: 'errors', title: 'Errors (4xx, 5xx)', unit: '/s', least: 1 },
  { metric: 'p50', title: 'Median duration', unit: 'ms', least: 1 },
  { metric: 'p99', title: '99th percentile', unit: 'ms', least: 5 },
  { metric: 'writes', title: 'Writes committed', unit: '/s', least: 5 },
  { metric: 'fsync', title: 'Log write with fsync', unit: 'ms', least: 5 },
  { metric: 'disk', title: 'Disk in use', unit: '%', least: 100 },
  { metric: 'memory', title: 'Memory', unit: 'MiB', least: 100 },
];

/** Keeps the points of the plots while the page is open. */
function usePoints(view: ClusterView | undefined): readonly Point[] {
  const kept = useRef<{ readonly points: readonly Point[]; readonly view: ClusterView | undefined }>({
    points: [],
    view: undefined,
  });
  if (view !== undefined && kept.current.view !== view)
    kept.current = { points: withView(kept.current.points, kept.current.view, view), view };
  return kept.current.points;
}

/** Every node of the cluster, live. */
export function ClusterPage() {
  const { value: view, error } = useStream('sys/nodes', clusterViewIn);
  const points = usePoints(view);
  if (view === undefined) {
    if (error === undefined) return <p class="muted">Asking the nodes …</p>;
    if (error.status === 403) return <MissingRight />;
    return <Note tone="bad">The cluster cannot be shown: {error.message}. Trying again.</Note>;
  }
  const names = view.members.map(({ name }) => name);
  const styleOf = (name: string): number => Math.max(0, names.indexOf(name));
  return (
    <>
      {error !== undefined && (
        <Note tone="warn">
          {error.status === 0 ? 'This node does not answer.' : `This node refuses: ${error.message}.`} The figures below are the
          last ones that it sent. Trying again.
        </Note>
      )}
      <Summary view={view} />
      <Replication />
      <section aria-labelledby="nodes-title">
        <h2 id="nodes-title">Nodes</h2>
        <NodeTable view={view} styleOf={styleOf} />
        <Terms />
      </section>
      <section aria-labelledby="plots-title">
        <h2 id="plots-title">Activity</h2>
        <div class="plots">
          {plots.map(({ metric, ...plot }) => (
            <Plot
              key={metric}
              {...plot}
              width={Math.max(shownMin, points.length)}
              lines={names.map((name, style) => ({
                name,
                style,
                values: points.map(({ samples }) => samples.get(name)?.[metric]),
              }))}
            />
          ))}
        </div>
      </section>
      <div class="columns">
        <section aria-labelledby="leaders-title">
          <h2 id="leaders-title">Leaders</h2>
          <Timeline members={view.members} styleOf={styleOf} />
        </section>
        <section aria-labelledby="log-title">
          <h2 id="log-title">Log, snapshot and records</h2>
          <LogTable view={view} />
        </section>
      </div>
    </>
  );
}

const MissingRight = () => (
  <Note tone="warn">
    <p>Your token may not read the state of the cluster. This policy allows it, and nothing else:</p>
    <pre>{'path "sys/nodes" {\n  capabilities = ["read"]\n}'}</pre>
  </Note>
);
