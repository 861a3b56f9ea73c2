// Makes Grafana dashboards from short descriptions of their panels.

export interface Panel {
  readonly title: string;
  readonly description: string;
  /** Unit of Grafana, such as `ms`, `bytes` or `reqps`. */
  readonly unit: string;
  readonly type?: 'stat' | 'timeseries' | 'state-timeline';
  /** Queries in PromQL, each with the legend of its lines. */
  readonly queries: readonly (readonly [query: string, legend: string])[];
}

export interface Dashboard {
  /** Identifies the dashboard, and names its file. */
  readonly uid: string;
  readonly title: string;
  /** Rows of panels. Panels of a row are equally wide. */
  readonly rows: readonly (readonly Panel[])[];
  /** Shows a selection of nodes, which queries use as `$instance`. */
  readonly selectsInstance?: boolean;
}

const columns = 24;
const heights = { stat: 4, timeseries: 8, 'state-timeline': 6 };
const datasource = { type: 'prometheus', uid: 'prometheus' };

/** Returns the JSON of a dashboard for Grafana 10 and later. */
export function dashboardJson({ uid, title, rows, selectsInstance = false }: Dashboard): string {
  const panels: object[] = [];
  let y = 0;
  for (const row of rows) {
    const h = Math.max(...row.map(({ type = 'timeseries' }) => heights[type]));
    const w = Math.floor(columns / row.length);
    for (const [column, panel] of row.entries()) {
      panels.push(panelJson(panel, { id: panels.length + 1, gridPos: { x: column * w, y, w, h } }));
    }
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
    panels,
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
    targets: queries.map(([expr, legendFormat], index) => ({
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
