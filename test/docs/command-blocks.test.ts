// @live
// Every command block of the documents is run by a test, or listed with a reason.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import { root } from '../process/live-server.ts';
import { type BlockRow, blockRows } from './command-blocks.ts';
import { codeBlocks } from './page.ts';

const languages = ['sh', 'ts', 'python', 'go'];
const pages = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '*.md'], { cwd: root })
  .toString()
  .split('\0')
  .filter((page) => page !== '' && existsSync(join(root, page)));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const count = (page: string, section?: string): number =>
  languages.reduce((sum, language) => sum + codeBlocks(page, language, section).length, 0);

/** Blocks of a row without those of the other rows of its page. */
const blocksOf = ({ page, section }: BlockRow): number =>
  section !== undefined
    ? count(page, section)
    : blockRows
        .filter((row) => row.page === page && row.section !== undefined)
        .reduce((sum, row) => sum - count(page, row.section), count(page));

describe('the command blocks of the documents', () => {
  it('have a language each, so that no block of commands is missed', () => {
    for (const page of pages) {
      const fences = [...read(page).matchAll(/^ *```(.*)$/gm)].map(([, language = '']) => language);
      const opening = fences.filter((_, at) => at % 2 === 0);
      expect(fences.length % 2, page).to.equal(0);
      for (const language of opening)
        expect(language, page).to.be.oneOf([...languages, 'text', 'yaml', 'hcl', 'json', 'mermaid']);
    }
  });

  it('are all listed', () => {
    const listed = new Set(blockRows.map(({ page }) => page));
    expect(pages.filter((page) => count(page) > 0)).to.have.members([...listed]);
    for (const row of blockRows) expect(blocksOf(row), `${row.page} ${row.section ?? ''}`).to.equal(row.blocks);
    for (const page of listed) {
      const rows = blockRows.filter((row) => row.page === page);
      const sum = rows.reduce((all, { blocks }) => all + blocks, 0);
      expect(sum, `${page}: a block in no row`).to.equal(count(page));
    }
  });

  for (const { page, section, ranBy, notRun, except } of blockRows) {
    const how = ranBy === undefined ? `not run: ${notRun}` : `run by ${ranBy}`;
    it(`${page} ${section ?? ''}: ${how}${except === undefined ? '' : `, except ${except}`}`, () => {
      if (ranBy === undefined) expect(notRun).to.match(/\w+/);
      // A harness reads the blocks of docs/seals.md for its tests.
      else expect(read(ranBy)).to.include(page === 'docs/seals.md' ? 'seal' : basename(page));
    });
  }

  it('and the text around them name scripts that exist', () => {
    const scripts = Object.keys(JSON.parse(read('package.json')).scripts);
    const named = (pattern: RegExp): string[] =>
      pages.flatMap((page) => [...read(page).matchAll(pattern)].map(([, name = '']) => name));
    expect(named(/npm run ([a-z][\w:]*)/g).filter((name) => !scripts.includes(name))).to.deep.equal([]);
    expect(named(/\bnode ((?:scripts|bench)\/[\w/-]+\.ts)/g).filter((file) => !existsSync(join(root, file)))).to.deep.equal([]);
  });
});
