import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { exportedMetrics, metricsReference } from '../../scripts/references/metrics-reference.ts';

const docs = new URL('../../docs/', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, docs), 'utf8');

describe('the reference of the metrics', () => {
  it('is what the generator writes; otherwise run `npm run build`', () => {
    expect(read('metrics.md')).to.equal(metricsReference());
  });

  it('has a row for each metric, once', () => {
    const rows = [...read('metrics.md').matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name);
    expect(rows).to.have.members(exportedMetrics().map(({ name }) => name));
  });

  it('has only names that `promtool check metrics` accepts', () => {
    const unit = /_(s|ms|us|ns|sec|milliseconds|minutes|hours|days|b|kb|mb|gb|kilobytes|megabytes)(_|$)/;
    const refused = exportedMetrics().filter(({ name, type }) => {
      const plain = name.replace(/_$/, ''); // the names of Vault's routes end so
      return !/^[a-z][a-z0-9_]*$/.test(plain) || unit.test(plain) || (plain.endsWith('_total') && String(type) !== 'counter');
    });
    expect(refused.map(({ name }) => name)).to.deep.equal([]);
    expect(exportedMetrics().filter(({ help }) => help === '')).to.deep.equal([]);
  });

  it('knows every metric that another page names', () => {
    const known = new Set(exportedMetrics().map(({ name }) => name));
    const pages = readdirSync(docs).filter((file) => file.endsWith('.md'));
    const named = pages.flatMap((file) => [...read(file).matchAll(/\bsvc_\w+/g)].map(([name]) => ({ file, name })));
    expect(named.map(({ name }) => name)).to.include('svc_raft_commit_time');
    const isKnown = (name: string): boolean => known.has(name) || known.has(name.replace(/_(bucket|sum|count)$/, ''));
    expect(named.filter(({ name }) => !isKnown(name))).to.deep.equal([]);
  });
});
