// A comment that cites a decision must lead somewhere.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'docs/decisions');
const records = readdirSync(folder).filter((name) => /^\d{4}-.*\.md$/.test(name));

/** Numbers in `decision 7`, `decisions 7 and 8` and `decisions 7, 8`. */
const citedIn = (text: string): number[] =>
  [...text.matchAll(/\bdecisions? (\d+(?:(?:,| and) \d+)*)/g)].flatMap(([, numbers = '']) => numbers.split(/,| and/).map(Number));

const textsBelow = (place: string): string[] =>
  readdirSync(join(root, place), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ts|mjs|md|ya?ml)$/.test(name) && !name.includes('node_modules') && !name.startsWith('conformance/'))
    .map((name) => join(place, name));

describe('decision records', () => {
  it('are found in every form of citation', () => {
    expect(citedIn('decision 7; decisions 8 and 9; (decisions 10, 11)')).to.deep.equal([7, 8, 9, 10, 11]);
  });

  it('exist for every number that a file cites', () => {
    const known = new Set(records.map((name) => Number(name.slice(0, 4))));
    const wrong = ['packages', 'docs', 'deploy', 'scripts', 'test']
      .flatMap(textsBelow)
      .flatMap((file) => citedIn(readFileSync(join(root, file), 'utf8')).map((number) => ({ file, number })))
      .filter(({ file, number }) => !known.has(number) && !file.endsWith('decisions.test.ts'));
    expect(wrong).to.deep.equal([]);
  });

  it('are listed once each in their index', () => {
    const index = readFileSync(join(folder, 'README.md'), 'utf8');
    const listed = [...index.matchAll(/^\| \[\d{4}\]\(([^)]+)\) \| \S/gm)].map(([, file]) => file);
    expect(listed.toSorted()).to.deep.equal(records.toSorted());
  });
});
