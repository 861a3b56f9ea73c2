// @live
// The dashboards are written by a script, so that all of them have the same form.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { dashboards, writeDashboards } from '../../scripts/dashboards.ts';

describe('the dashboards', () => {
  it('are written as one file each, named by its uid', () => {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-dashboards-'));
    try {
      writeDashboards(folder);
      const written = readdirSync(folder).map((name) => ({ name, ...JSON.parse(readFileSync(join(folder, name), 'utf8')) }));
      expect(written).to.have.length(dashboards.length);
      for (const { name, uid, title, panels } of written) {
        expect(name).to.equal(`${uid}.json`);
        expect(title).to.match(/^transitd/);
        expect(panels).to.have.length.above(5);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  for (const { uid, rows, selectsInstance = false } of dashboards)
    describe(uid, () => {
      const all = rows.flatMap(({ panels }) => panels);

      it('explains each panel', () => {
        for (const { title, description } of all) expect(description, title).to.match(/\.$/).and.have.length.above(10);
      });

      it('has no two panels with one title', () => {
        const titles = all.map(({ title }) => title);
        expect(titles).to.deep.equal([...new Set(titles)]);
      });

      it(`${selectsInstance ? 'selects' : 'does not select'} nodes in each query`, () => {
        for (const { queries } of all)
          for (const query of Object.values(queries)) expect(query.includes('$instance')).to.equal(selectsInstance);
      });
    });
});
