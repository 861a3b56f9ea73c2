import { expect } from 'chai';
import { apiDocument } from '../../scripts/references/api-document.ts';
import { apiReference } from '../../scripts/references/api-reference.ts';

const document = await apiDocument();
const page = apiReference(document);

describe('the reference of the API', () => {
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
