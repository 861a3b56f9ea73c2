// Asks every policy of docs/policies.md the requests in the table below it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isCapability, policyPermits } from '@transitd/access';
import { expect } from 'chai';
import { formatPolicy } from '../src/local/policy-format.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/policies.md'), 'utf8');
const recipes = page.split(/^(?=## )/m).slice(1);

describe('docs/policies.md', () => {
  for (const recipe of recipes) {
    const title = /^## (.*)$/m.exec(recipe)?.[1] ?? '';
    const [, policy = ''] = /^```hcl\n(.*?)^```$/ms.exec(recipe) ?? [];
    const rows = [...recipe.matchAll(/^\| `([^`]+)` \| (\w+) \| (allowed|denied) \|$/gm)];

    it(`has a formatted policy with requests that it allows and denies: ${title}`, () => {
      expect(formatPolicy(policy, 'docs/policies.md')).to.equal(policy);
      expect(new Set(rows.map(([, , , answer]) => answer))).to.deep.equal(new Set(['allowed', 'denied']));
    });

    for (const [, path = '', capability = '', answer] of rows)
      it(`${title}: ${capability} on ${path} is ${answer}`, () => {
        if (!isCapability(capability)) throw new Error(`${capability} is not a capability`);
        const request = { path, capability, parameters: Object.create(null) };
        expect(policyPermits(policy, request, 0)).to.equal(answer === 'allowed');
      });
  }
});
