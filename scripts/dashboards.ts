// The dashboards of Grafana 10 and later, from the description of their panels in deploy/grafana/dashboards.yml.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

interface Panel {
  readonly title: string;
  readonly description: string;
  /** Unit of Grafana, such as `ms`, `bytes` or `reqps`. */
  readonly unit: string;
  readonly type?: 'stat' | 'timeseries' | 'state-timeline';
  /** Queries in PromQL, by the legend of their lines. */
  readonly queries: Readonly<Record<string, string>>;
}

interface Dashboard {
  /** Identifies the dashboard, and names its file. */
  readonly uid: string;
  readonly title: string;
  /** Panels of a row are equally wide. */
  readonly rows: readonly { readonly panels: readonly Panel[] }[];
  /** Shows a selection of nodes, which queries use as `$instance`. */
  readonly selectsInstance?: boolean;
}

export const dashboards: readonly Dashboard[] = parse(
  readFileSync(join(import.meta.dirname, '../deploy/grafana/dashboards.yml'), 'utf8'),
);

const columns = 24;
const heights = { stat: 4, timeseries: 8, 'state-timeline': 6 };
const datasource = { type: 'prometheus', uid: 'prometheus' };

/** Writes one file for each dashboard, named by its uid. */
export function writeDashboards(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const dashboard of dashboards) writeFileSync(join(folder, `${dashboard.uid}.json`), dashboardJson(dashboard));
}

function dashboardJson({ uid, title, rows, selectsInstance = false }: Dashboard): string {
  const all: object[] = [];
  let y = 0;
  for (const { panels } of rows) {
    const h = Math.max(...panels.map(({ type = 'timeseries' }) => heights[type]));
    const w = Math.floor(columns / panels.length);
    for (const [column, panel] of panels.entries())
      all.push(panelJson(panel, { id: all.length + 1, gridPos: { x: column * w, y, w, h } }));
    y += h;
  }
  const dashboard = {
    uid,
    title,
    tags: ['transitd'],
    timezone: 'browser',
    schemaVersion: 39,
    version: 1,
    refresh: '5s',
    time: { from: 'now-15m', to: 'now' },
    editable: true,
    // A list of the other dashboards of transitd.
    links: [{ type: 'dashboards', tags: ['transitd'], title: 'transitd', asDropdown: false, keepTime: true, includeVars: true }],
    panels: all,
    annotations: { list: [] },
    templating: { list: selectsInstance ? [instanceVariable] : [] },
  };
  return `${JSON.stringify(dashboard, undefined, 2)}\n`;
}

function panelJson({ title, description, unit, type = 'timeseries', queries }: Panel, position: object): object {
  const defaults = type === 'timeseries' ? { unit, min: 0 } : { unit };
  return {
    ...position,
    type,
    title,
    description,
    datasource,
    fieldConfig: { defaults, overrides: [] },
    options: {},
    targets: Object.entries(queries).map(([legendFormat, expr], index) => ({
      refId: String.fromCharCode(65 + index),
      datasource,
      expr,
      legendFormat,
    })),
  };
}

const instanceVariable = {
  name: 'instance',
  label: 'Node',
  type: 'query',
  datasource,
  query: 'label_values(svc_core_unsealed, instance)',
  refresh: 2,
  sort: 1,
  multi: true,
  includeAll: true,
  current: { text: 'All', value: '$__all' },
};
