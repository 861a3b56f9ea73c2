// Every link in the Markdown files of the project leads to a file and, if it names a heading, to that heading.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect } from 'chai';
import { sections } from '../site/sections.ts';

const root = join(import.meta.dirname, '..');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '*.md'], { cwd: root })
  .toString()
  .split('\0')
  .filter((file) => file !== '' && existsSync(join(root, file)));

/** Returns the text without code, because brackets in code are not links. */
const withoutCode = (text: string): string => text.replace(/^( *)(```|~~~)[\s\S]*?^\1\2 *$/gm, '').replace(/`[^`\n]*`/g, 'code');

/** Returns the anchors of a page: of its headings as GitHub makes them, and those that it sets itself. */
function anchorsOf(file: string): ReadonlySet<string> {
  const text = read(file).replace(/^( *)(```|~~~)[\s\S]*?^\1\2 *$/gm, '');
  const seen = new Map<string, number>();
  const anchors = [...text.matchAll(/^#{1,6} +(.+?) *#*$/gm)].map(([, heading = '']) => {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
    const slug = plain
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
      .replaceAll(' ', '-');
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  });
  return new Set([...anchors, ...[...text.matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, id = '']) => id)]);
}

/** Returns the links of a text that stay in the project. */
const linksIn = (text: string): string[] =>
  [...withoutCode(text).matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z][a-z+.-]*:/i.test(target));

/** Returns why a link of a file leads nowhere; undefined if it leads somewhere. */
function faultOf(file: string, link: string): string | undefined {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? file : normalize(join(dirname(file), decodeURIComponent(path)));
  if (target.startsWith('..')) return 'leaves the project';
  if (!existsSync(join(root, target))) return 'no such file';
  if (anchor === undefined || !target.endsWith('.md') || statSync(join(root, target)).isDirectory()) return undefined;
  return anchorsOf(target).has(anchor) ? undefined : 'no such heading';
}

describe('the links of the documents', () => {
  it('are found, and a wrong one is noticed', () => {
    expect(linksIn('[a](b.md#c) `[no](x.md)` [d](https://e) ![f](g.png "h")')).to.deep.equal(['b.md#c', 'g.png']);
    expect(faultOf('README.md', 'docs/none.md')).to.equal('no such file');
    expect(faultOf('README.md', 'docs/runbook.md#none')).to.equal('no such heading');
    expect(faultOf('docs/runbook.md', '#alerts')).to.equal(undefined);
    expect(faultOf('docs/runbook.md', '../../x')).to.equal('leaves the project');
  });

  for (const file of files)
    it(`of ${file} lead to files and headings`, () => {
      const faults = linksIn(read(file)).flatMap((link) => {
        const fault = faultOf(file, link);
        return fault === undefined ? [] : [`${link}: ${fault}`];
      });
      expect(faults).to.deep.equal([]);
    });
});

describe('the navigation of the documentation site', () => {
  it('names every page of docs/ once', () => {
    const pages = readdirSync(join(root, 'docs')).filter((file) => file.endsWith('.md'));
    const named = sections.flatMap((section) => section.pages).map((page) => `${page}.md`);
    expect(named).to.have.members([...pages, 'decisions/README.md']);
  });
});
