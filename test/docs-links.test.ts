// @live
// Every link in the Markdown files of the project leads to a file and, if it names a heading, to that heading.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect } from 'chai';
import { titleOf } from '../scripts/references/title-of.ts';
import { generated, indexPage, sections } from '../site/sections.ts';

const root = join(import.meta.dirname, '..');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
/** Files of the project, and those that were added but not committed. */
const project = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  .toString()
  .split('\0')
  .filter((file) => file !== '' && existsSync(join(root, file)));
const files = project.filter((file) => file.endsWith('.md'));

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

const folders: ReadonlySet<string> = new Set(
  project.flatMap((file) => {
    const parts = file.split('/');
    return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join('/'));
  }),
);
const paths = [...project, ...folders];

/** The endings of files that only the project has. An operator has files in YAML or JSON too. */
const sourceEnding = /\.(?:go|grit|md|mjs|proto|py|sh|tsx?)$/;
const name = /^(?:\.\/)?([\w.@*-]+(?:\/[\w.@*-]+)*)\/?$/;

/** Returns the names of files and folders of the project in the code of a page. A pattern such as `docs/*.md` is one too. */
const namesIn = (page: string, text: string): readonly string[] =>
  [...text.replace(/^( *)(```|~~~)[\s\S]*?^\1\2 *$/gm, '').matchAll(/`([^`\n]+)`/g)]
    .map(([, span = '']) => span.replace(/:\d+$/, ''))
    .filter((span) => {
      const [, path = ''] = name.exec(span) ?? [];
      const isFolderOfPackage = span.endsWith('/') && page.startsWith('packages/');
      return path !== '' && (isRooted(span) || sourceEnding.test(path) || isFolderOfPackage);
    });

const isRooted = (span: string): boolean => span.includes('/') && folders.has(span.split('/')[0] ?? '');

/**
 * Whether the project has a file or folder of this name. It may be the end of a path; a name without a folder, and a folder, on a page of a
 * package belong to that package. The rows of a list may leave out the ending of tests.
 */
function isNameOfFile(page: string, span: string): boolean {
  const path = name.exec(span)?.[1] ?? '';
  const [own] = /^packages\/[^/]+\//.exec(page) ?? [''];
  const isOwn = own !== '' && !isRooted(span) && (span.endsWith('/') || !span.includes('/'));
  const pattern = path.replace(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*');
  const end = new RegExp(`(?:^|/)${pattern}(?:\\.test\\.ts)?$`);
  return paths.some((each) => (!isOwn || `${each}/`.startsWith(own)) && end.test(each)) || isIgnored(path);
}

/** Whether git ignores the path: a program makes such files. */
const isIgnored = (path: string): boolean => spawnSync('git', ['check-ignore', '--quiet', path], { cwd: root }).status === 0;

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

describe('the file names in the code of the documents', () => {
  it('are found, and a wrong one is noticed', () => {
    const text =
      '`docs/none.md` `a/b.ts:7` `seal.key` `sys/health` `src/x/` `x.ts` `"y.ts"` `transitd.yaml` `npm run z.ts`\n```sh\n`c.ts`\n```';
    expect(namesIn('docs/a.md', text)).to.deep.equal(['docs/none.md', 'a/b.ts', 'x.ts']);
    expect(namesIn('packages/a/README.md', '`src/x/`')).to.deep.equal(['src/x/']);
    for (const [page, span, expected] of [
      ['docs/a.md', 'docs/runbook.md', true],
      ['docs/a.md', 'docs/none.md', false],
      ['docs/a.md', 'core/raft.ts', true],
      ['docs/a.md', 'election/raft.ts', false],
      ['docs/a.md', 'docs/r*book.md', true],
      ['docs/a.md', 'test/attack/clock', true],
      ['docs/a.md', 'site/dist', true],
      ['packages/raft-core/README.md', 'election/', true],
      ['packages/raft-core/README.md', 'policy/', false],
      ['packages/raft-core/README.md', 'acl.ts', false],
      ['packages/access/README.md', 'acl.ts', true],
    ] as const)
      expect(isNameOfFile(page, span), `${page}: ${span}`).to.equal(expected);
  });

  for (const file of files)
    it(`of ${file} exist`, () => {
      expect(namesIn(file, read(file)).filter((span) => !isNameOfFile(file, span))).to.deep.equal([]);
    });
});

describe('the navigation of the documentation site', () => {
  it('names every page of docs/ once', () => {
    const pages = files.filter((file) => /^docs\/[^/]+$/.test(file)).map((file) => file.replace(/^docs\/|\.md$/g, ''));
    const named = sections.flatMap((section) => Object.keys(section.pages));
    expect(['index', ...named]).to.have.members([...pages, ...generated, 'decisions/README']);
  });

  it('is the one in docs/index.md; otherwise run `npm run build`', () => {
    expect(read('docs/index.md')).to.equal(indexPage(titleOf));
  });
});
