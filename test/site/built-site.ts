// The built documentation site: its pages, their links, and a server for it.
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, posix, relative } from 'node:path';

/** Returns the text with the entities of HTML that occur in attributes resolved. */
const unescaped = (text: string): string =>
  text
    .replaceAll('&amp;', '&')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>');

interface SitePage {
  /** Path of the page on the site, such as `/decisions/README`. */
  readonly path: string;
  readonly title: string;
  /** Targets of links and sources of images, scripts and styles. */
  readonly targets: readonly string[];
  readonly anchors: ReadonlySet<string>;
}

/** A folder with the built site. */
export class BuiltSite {
  readonly #folder: string;
  readonly pages: ReadonlyMap<string, SitePage>;

  constructor(folder: string) {
    this.#folder = folder;
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.html'));
    this.pages = new Map(files.map((file) => pageIn(folder, file)).map((page) => [page.path, page]));
  }

  /** Returns why a target on a page leads nowhere; undefined if it leads somewhere, or out of the site. */
  faultOf(page: SitePage, target: string): string | undefined {
    if (/^[a-z][a-z+.-]*:/i.test(target)) return undefined;
    if (target.startsWith('//')) return 'names another host';
    const [written = '', anchor = ''] = target.split('#').map(decodeURIComponent);
    const [bare = ''] = written.split('?');
    const path = bare === '' ? page.path : posix.resolve(posix.dirname(page.path), bare);
    const found = this.pages.get(pathOf(path));
    if (found === undefined) return existsSync(join(this.#folder, path)) ? undefined : 'leads to no page and no file';
    return anchor === '' || found.anchors.has(anchor) ? undefined : 'leads to no heading of its page';
  }

  /** Serves the folder, as any web server that adds `.html` does. */
  async serve(): Promise<{ readonly address: string; readonly close: () => void }> {
    const server: Server = createServer((req, res) => {
      const path = decodeURIComponent(new URL(req.url ?? '/', 'http://site').pathname);
      const file = [path, `${path}.html`, join(path, 'index.html')]
        .map((name) => join(this.#folder, name))
        .find((name) => !relative(this.#folder, name).startsWith('..') && extname(name) !== '' && existsSync(name));
      if (file === undefined) return void res.writeHead(404).end();
      res.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' }).end(readFileSync(file));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const close = (): void => {
      server.close();
      server.closeAllConnections();
    };
    return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
  }
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

/** Returns the path of a page without `.html` and `index`. */
const pathOf = (path: string): string =>
  `/${path.replace(/^\/|(\.html|\/)$/g, '').replace(/(^|\/)index$/, '$1')}`.replace(/(.)\/$/, '$1');

function pageIn(folder: string, file: string): SitePage {
  const html = readFileSync(join(folder, file), 'utf8');
  const all = (pattern: RegExp): string[] => [...html.matchAll(pattern)].map(([, text = '']) => unescaped(text));
  return {
    path: pathOf(file),
    title: all(/<title>([^<]*)<\/title>/g)[0] ?? '',
    targets: all(/\s(?:href|src)="([^"]*)"/g),
    anchors: new Set(all(/\s(?:id|name)="([^"]*)"/g)),
  };
}
