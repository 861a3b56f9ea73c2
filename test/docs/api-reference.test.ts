import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { apiDocument } from '../../scripts/references/api-document.ts';
import { apiReference } from '../../scripts/references/api-reference.ts';

const document = await apiDocument();
const page = readFileSync(new URL('../../docs/api-reference.md', import.meta.url), 'utf8');

describe('the reference of the API', () => {
  it('is what the generator writes; otherwise run `npm run docs:api`', () => {
    expect(page === apiReference(document), 'docs/api-reference.md is outdated').to.equal(true);
  });

  it('has a section for every operation, with every field of its body and every answer of its own', () => {
    for (const [path, item] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(item)) {
        const section = page.split(`\n### ${method.toUpperCase()} \`${path}\`\n`)[1]?.split('\n### ')[0] ?? '';
        for (const { name } of operation.parameters ?? []) expect(section, `${method} ${path}`).to.include(`\n| \`${name}\` | `);
        const fields = operation.requestBody?.content?.['application/json']?.schema?.properties ?? {};
        for (const name of Object.keys(fields)) expect(section, `${method} ${path}`).to.include(`\n| \`${name}\` | body |`);
        for (const [status, { $ref }] of Object.entries(operation.responses))
          if ($ref === undefined) expect(section, `${method} ${path}`).to.include(`\n- ${status}: `);
      }
    }
  });
});
