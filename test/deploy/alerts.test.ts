// @live
// An operator reads an alert's summary first, then its description, then its section in the runbook.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { root } from '../process/live-server.ts';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<'summary' | 'description' | 'runbook_url', string>>;
}

interface RuleTest {
  readonly alert_rule_test?: readonly { readonly alertname: string; readonly exp_alerts: readonly object[] }[];
  readonly promql_expr_test?: readonly { readonly exp_samples?: readonly { readonly labels: string }[] }[];
}

const groups = parse(readFileSync(join(root, 'deploy/prometheus/rules.yml'), 'utf8')).groups as { rules: Alert[] }[];
const alerts = groups.flatMap(({ rules }) => rules).filter(({ alert }) => alert !== undefined);
const ruleTests = ['rules.test.yml', 'rules.replication.test.yml', 'rules.days.test.yml'].flatMap(
  (file) => (parse(readFileSync(join(root, 'deploy/prometheus', file), 'utf8')) as { tests: RuleTest[] }).tests,
);
const runbook = readFileSync(join(root, 'docs/runbook.md'), 'utf8');
const sections = [...runbook.matchAll(/^### (Transitd\w+)$/gm)].map(([, name]) => name);

describe('the alerts', () => {
  it('each have a runbook section, in the order of the rules', () => {
    expect(alerts).not.to.be.empty;
    expect(sections).to.deep.equal(alerts.map(({ alert }) => alert));
  });

  for (const { alert, expr, annotations } of alerts)
    describe(alert, () => {
      it('has a short summary, a description and a link to its runbook section', () => {
        expect(annotations.summary).to.have.length.within(20, 100);
        expect(annotations.description).to.match(/\.$/).and.have.length.within(40, 320);
        expect(annotations.runbook_url).to.equal(`docs/runbook.md#${alert.toLowerCase()}`);
      });

      it('fires in a test of the rules', () => {
        const cases = ruleTests.flatMap(({ alert_rule_test = [] }) => alert_rule_test);
        const rows = ruleTests.flatMap(({ promql_expr_test = [] }) =>
          promql_expr_test.flatMap(({ exp_samples = [] }) => exp_samples),
        );
        const isExpected = cases.some(({ alertname, exp_alerts }) => alertname === alert && exp_alerts.length > 0);
        expect(isExpected || rows.some(({ labels }) => labels.includes(`alertname="${alert}"`))).to.equal(true);
      });

      it('names the node in its summary, unless it is about the whole cluster', () => {
        const ofCluster = /^(sum|max|count|transitd:(nodes_up|nodes_active|responses_failed))\b/.test(expr);
        expect(annotations.summary.includes('{{ $labels.instance }}')).to.equal(!ofCluster);
      });
    });
});
