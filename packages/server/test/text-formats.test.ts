import { expect } from 'chai';
import { Metrics } from '../src/metrics/metrics.ts';
import { openMetricsText, prefersOpenMetrics } from '../src/metrics/text-formats.ts';

const sources = { node: () => undefined };

/** Returns names with labels, without the bounds of buckets, which the formats write differently. */
const samplesOf = (text: string): string[] => {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => line.slice(0, line.lastIndexOf(' ')).replace(/le="[^"]*"/, 'le'));
};

describe('OpenMetrics', () => {
  it('has the same samples as the Prometheus format, and ends with # EOF', async () => {
    const metrics = new Metrics('t', { ...sources, auditDevices: ['file'] });
    metrics.responded(200);
    metrics.route('encrypt').observe(3);
    const [plain, open] = [await metrics.prometheus(), await metrics.openMetrics()];
    // The formats are rendered one after the other, and the kinds of resources of the process change meanwhile.
    const stable = (text: string): string[] => samplesOf(text).filter((name) => !/^nodejs_(active|gc)/.test(name));
    expect(stable(open)).to.have.members(stable(plain));
    expect(open).to.match(/\n# EOF\n$/);
    expect(stable(open)).to.include.members(['t_http_responses{class="2xx"}', 't_audit_log_request_failure{device="file"}']);
  });

  it('declares a counter without _total as untyped in the Prometheus format', async () => {
    const plain = await new Metrics('t', sources).prometheus();
    expect(plain).to.contain('# TYPE t_raft_apply untyped\n');
    expect(plain).to.contain('# TYPE process_cpu_seconds_total counter\n').and.contain('\nprocess_cpu_seconds_total ');
  });

  it('declares a counter without _total as unknown, and names the family of any other counter without _total', async () => {
    const open = await new Metrics('t', sources).openMetrics();
    expect(open).to.contain('# TYPE t_raft_apply unknown\n');
    expect(open).to.contain('# TYPE process_cpu_seconds counter\n').and.contain('\nprocess_cpu_seconds_total ');
    expect(open).to.contain('# TYPE t_core_handle_request histogram\n');
    for (const [, family] of open.matchAll(/^# TYPE (\w+) counter$/gm)) expect(open).to.contain(`\n${family}_total`);
  });

  it('writes the bounds of buckets with a decimal point', async () => {
    const metrics = new Metrics('t', sources);
    metrics.requestMs.observe(1);
    const bounds = [...(await metrics.openMetrics()).matchAll(/^t_core_handle_request_bucket\{le="([^"]+)"\}/gm)];
    expect(bounds.map(([, bound]) => bound)).to.deep.equal([
      ...['0.1', '0.25', '0.5', '1.0', '2.5', '5.0', '10.0', '25.0', '50.0', '100.0', '250.0', '500.0'],
      ...['1000.0', '2500.0', '5000.0', '10000.0', '30000.0', '+Inf'],
    ]);
  });

  it('escapes help texts and labels, and writes special numbers', () => {
    const values = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map((value) => ({
      value,
      labels: { l: 'a"\\\n' },
    }));
    const metric = { name: 'g', help: 'a "b"\n\\', type: 'gauge', aggregator: 'sum', values } as never;
    const label = 'g{l="a\\"\\\\\\n"}';
    const lines = ['# TYPE g gauge', '# HELP g a \\"b\\"\\n\\\\', `${label} NaN`, `${label} +Inf`, `${label} -Inf`, '# EOF', ''];
    expect(openMetricsText([metric])).to.equal(lines.join('\n'));
  });
});

describe('the choice of the format', () => {
  for (const { accept, isOpen } of [
    { accept: undefined, isOpen: false },
    { accept: '*/*', isOpen: false },
    { accept: 'text/plain', isOpen: false },
    { accept: 'application/openmetrics-text', isOpen: true },
    { accept: 'Application/OpenMetrics-Text; Version=1.0.0', isOpen: true },
    { accept: 'application/openmetrics-text; version=0.0.1', isOpen: false },
    { accept: 'application/openmetrics-text;q=0', isOpen: false },
    { accept: 'application/openmetrics-text;q=broken', isOpen: false },
    { accept: 'text/plain, application/openmetrics-text;q=0.5', isOpen: false },
    {
      accept:
        'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;q=0.3,*/*;q=0.2',
      isOpen: true,
    },
  ]) {
    it(`is ${isOpen ? 'OpenMetrics' : 'plain text'} for ${accept ?? 'no header'}`, () => {
      expect(prefersOpenMetrics(accept)).to.equal(isOpen);
    });
  }
});
