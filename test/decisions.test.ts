// Every cited decision exists, and the index lists every decision.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { citedIn, decisionFindings } from '../scripts/check/decisions.ts';
import { readSourceFiles } from '../scripts/check/source-files.ts';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'docs/decisions');
const records = readdirSync(folder).filter((name) => /^\d{4}-.*\.md$/.test(name));

/** Returns the heading of a record without its number. @throws TypeError if the first line is no heading with the number of the file */
function headingOf(file: string): string {
  const [line = ''] = readFileSync(join(folder, file), 'utf8').split('\n');
  const number = `# ${file.slice(0, 4)} `;
  if (!line.startsWith(number)) throw new TypeError(`${file} does not begin with "${number}"`);
  return line.slice(number.length);
}

describe('decision records', () => {
  it('are found in every form of citation', () => {
    expect(citedIn('decision 7; decisions 8 and 9; (decisions 10, 11)')).to.deep.equal([7, 8, 9, 10, 11]);
  });

  it('exist for every number that a file cites', () => {
    expect(decisionFindings(readSourceFiles(root))).to.deep.equal([]);
  });

  it('are listed in their index in order, each with its heading', () => {
    const index = readFileSync(join(folder, 'README.md'), 'utf8');
    const listed = index.split('\n').filter((line) => line.startsWith('| ['));
    expect(listed).to.deep.equal(records.toSorted().map((file) => `| [${file.slice(0, 4)}](${file}) | ${headingOf(file)} |`));
  });
});
