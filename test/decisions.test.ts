// Every cited decision exists, and the index lists every decision.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { citedIn, decisionFindings } from '../scripts/check/decisions.ts';
import { readSourceFiles } from '../scripts/check/source-files.ts';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'docs/decisions');
const records = readdirSync(folder).filter((name) => /^\d{4}-.*\.md$/.test(name));

describe('decision records', () => {
  it('are found in every form of citation', () => {
    expect(citedIn('decision 7; decisions 8 and 9; (decisions 10, 11)')).to.deep.equal([7, 8, 9, 10, 11]);
  });

  it('exist for every number that a file cites', () => {
    expect(decisionFindings(readSourceFiles(root))).to.deep.equal([]);
  });

  it('are listed once each in their index', () => {
    const index = readFileSync(join(folder, 'README.md'), 'utf8');
    const listed = [...index.matchAll(/^\| \[\d{4}\]\(([^)]+)\) \| \S/gm)].map(([, file]) => file);
    expect(listed.toSorted()).to.deep.equal(records.toSorted());
  });
});
