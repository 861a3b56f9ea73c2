import { Limits } from '../../packages/api/src/index.ts';
import { Connections } from '../../packages/http/src/index.ts';
import { loadOf } from '../../packages/server/src/gateways/thread-load.ts';
import { Metrics } from '../../packages/server/src/metrics/metrics.ts';

/** A registered metric. prom-client's types lack `labelNames`. */
interface Registered {
  readonly name: string;
  readonly help: string;
  readonly type: unknown;
  readonly labelNames: readonly string[];
}

const prefix = 'svc';

/** Sections of the page: a title, and a pattern for the names of its metrics without their prefix. The first match decides. */
const sections: readonly (readonly [title: string, names: RegExp])[] = [
  ['Requests', /^svc_(core_(handle|in_flight|requests|body|connections)|http_|route_|quota_)/],
  ['State of the node', /^svc_(core_|disk_|build_)/],
  ['Certificates', /^svc_(certificate_|authority_|revocation_list_)/],
  ['Raft and the log', /^svc_raft_/],
  ['Members, heartbeats and forwarding', /^svc_(autopilot_|ha_)/],
  ['Replication with another cluster', /^svc_replication_/],
  ['Barrier', /^svc_barrier_/],
  ['Audit', /^svc_audit_/],
  ['Traces', /^svc_tracing_/],
  ['Seal', /^svc_seal_/],
  ['Other metrics of transitd', /^svc_/],
  ['Process', /^process_/],
  ['Node.js', /^nodejs_/],
];

/** Returns every metric that a node may export, with the default prefix, sorted by name. */
export function exportedMetrics(): readonly Registered[] {
  const limits = new Limits({ reads: 1, changes: 1, logins: 1, waiting: 0, body_memory: 1 });
  const load = { limits, total: () => loadOf(limits, new Connections({ own: 0 }), 0), gateways: () => undefined };
  const { registry } = new Metrics(prefix, { node: () => undefined, load });
  const registered = registry.getMetricsAsArray() as unknown as readonly Registered[];
  return registered.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns `docs/metrics.md`. */
export function metricsReference(): string {
  const rows = new Map(sections.map(([title]): [string, string[]] => [title, []]));
  for (const metric of exportedMetrics()) {
    const section = sections.find(([, names]) => names.test(metric.name));
    if (section === undefined) throw new Error(`${metric.name} belongs to no section of docs/metrics.md`);
    rows.get(section[0])?.push(rowOf(metric));
  }
  const filled = [...rows].filter(([, lines]) => lines.length > 0);
  return `${intro}${filled.map(([title, lines]) => `\n## ${title}\n\n${head}\n${lines.join('\n')}\n`).join('')}`;
}

const rowOf = ({ name, type, labelNames, help }: Registered): string => {
  const labels = labelNames.filter((label) => label !== 'le').map((label) => `\`${label}\``);
  return `| \`${name}\` | ${[type, ...labels].join(', ')} | ${help.replaceAll('|', '\\|')} |`;
};

const head = '| metric | type, labels | meaning |\n|---|---|---|';
const intro = `# Metrics

Every metric that a node exports at \`/metrics\` of its telemetry listener and at \`/v1/sys/metrics?format=prometheus\`. Written by
\`npm run build\` from the code. [Monitoring](monitoring.md#metrics) explains how to scrape them, and the [runbook](runbook.md#alerts) what
to do when an alert fires.

- \`${prefix}\` is the default of the setting \`telemetry.prefix\`. The metrics of the process and of Node.js have no prefix.
- A histogram has the rows \`_bucket{le}\`, \`_sum\` and \`_count\`. Durations are in milliseconds, except in the last two sections.
- No label contains the name of a key, a token, a user, a role or a policy.
- Metrics of the members have a value only on the active node, and metrics with labels only after the first event.
`;
