// @live
// The dashboards are written by a script, so that all of them have the same form.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { dashboardFiles, dashboards } from '../../scripts/dashboards/files.ts';
import { root } from '../process/live-server.ts';

const folder = join(root, 'deploy/grafana/dashboards');

describe('the dashboards', () => {
  it('are what the generator writes; otherwise run `npx node scripts/dashboards.ts`', () => {
    const written = readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]);
    expect(Object.fromEntries(written)).to.deep.equal(Object.fromEntries(dashboardFiles()));
  });

  for (const { uid, rows, selectsInstance = false } of dashboards)
    describe(uid, () => {
      const panels = rows.flat();

      it('explains each panel', () => {
        for (const { title, description } of panels) expect(description, title).to.match(/\.$/).and.have.length.above(10);
      });

      it('has no two panels with one title', () => {
        const titles = panels.map(({ title }) => title);
        expect(titles).to.deep.equal([...new Set(titles)]);
      });

      it(`${selectsInstance ? 'selects' : 'does not select'} nodes in each query`, () => {
        for (const { queries } of panels)
          for (const [query] of queries) expect(query.includes('$instance')).to.equal(selectsInstance);
      });
    });
});
