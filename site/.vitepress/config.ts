// The documentation site: the pages of docs/ with navigation and search. `npm run site` builds it.
import { existsSync, readdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import { defineConfig } from 'vitepress';
import { titleOf } from '../../scripts/references/title-of.ts';
import { sections } from '../sections.ts';

const docs = join(import.meta.dirname, '../../docs');

const packages = join(import.meta.dirname, '../node_modules');

/** Address of the sources on the web. Links that leave docs/ lead there; without it, they are plain text. */
const sources = process.env['DOCS_SOURCES']?.replace(/\/$/, '');

const item = (page: string) => ({ text: titleOf(page), link: `/${page}` });
const records = readdirSync(join(docs, 'decisions'))
  .filter((file) => /^\d{4}-.*\.md$/.test(file))
  .toSorted()
  .map((file) => item(`decisions/${file.replace(/\.md$/, '')}`));

export default defineConfig({
  title: 'transitd',
  description: 'A clustered transit cryptography service',
  lang: 'en-US',
  srcDir: '../docs',
  outDir: 'dist',
  cleanUrls: true,
  // The site is served without any other host: no fonts, no analytics.
  head: [],
  ignoreDeadLinks: false,
  vite: {
    resolve: {
      // The pages are outside of the folder that has the packages.
      alias: [
        { find: /^vue\/server-renderer$/, replacement: join(packages, 'vue/server-renderer/index.mjs') },
        { find: /^vue$/, replacement: join(packages, 'vue/dist/vue.runtime.esm-bundler.js') },
      ],
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    nav: sections.map(({ title, pages }) => ({ text: title, link: `/${Object.keys(pages)[0]}` })),
    sidebar: [
      ...sections.map(({ title, pages }) => ({ text: title, items: Object.keys(pages).map(item) })),
      { text: 'Decisions', collapsed: true, items: records },
    ],
    outline: [2, 3],
  },
  markdown: {
    config: (md) => {
      md.core.ruler.push('links-out-of-docs', ({ tokens, env }) => {
        for (const token of tokens)
          for (const child of token.children ?? []) if (child.type === 'link_open') leave(child, env.relativePath);
      });
      // Pages become templates of Vue, in which two braces begin an expression.
      for (const rule of ['text', 'code_inline'] as const) {
        const render = md.renderer.rules[rule];
        md.renderer.rules[rule] = (...args) => (render?.(...args) ?? '').replaceAll('{{', '&#123;&#123;');
      }
      const fence = md.renderer.rules.fence;
      md.renderer.rules.fence = (tokens, index, ...rest) => {
        const token = tokens[index];
        if (token?.info.trim() !== 'mermaid') return fence?.(tokens, index, ...rest) ?? '';
        return `<Diagram code="${Buffer.from(token.content).toString('base64')}" />`;
      };
    },
  },
});

interface Link {
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
  tag: string;
  attrs: [string, string][] | null;
}

/** Changes a link from a page to a file that is not a page. */
function leave(link: Link, page: string): void {
  const target = link.attrGet('href') ?? '';
  if (/^[a-z]+:|^#/.test(target)) return;
  const [path = ''] = target.split('#');
  const file = posix.normalize(posix.join('docs', posix.dirname(page), path));
  if (file.startsWith('docs/') && existsSync(join(docs, '..', file)) && !file.endsWith('/')) return;
  if (sources !== undefined) link.attrSet('href', `${sources}/${file}`);
  else Object.assign(link, { attrs: null });
}
