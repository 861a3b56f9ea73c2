// @live
// The documentation site, built as `npm run site` builds it: every link of every page leads somewhere, and a browser shows the pages.
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { sections } from '../../site/sections.ts';
import { ConsoleBrowser } from '../console/browser.ts';
import { root } from '../process/live-server.ts';
import { BuiltSite } from './built-site.ts';

/** The build downloads its packages first. */
const buildMs = 1_500_000;

describe('the documentation site', function () {
  this.timeout(buildMs);
  let site: BuiltSite;
  let served: Awaited<ReturnType<BuiltSite['serve']>>;
  let browser: ConsoleBrowser;

  before(async () => {
    await promisify(execFile)(process.execPath, [join(root, 'scripts/site.ts')], { cwd: root, maxBuffer: 2 ** 26 });
    site = new BuiltSite(join(root, 'site/dist'));
    served = await site.serve();
    browser = await ConsoleBrowser.launch();
  });
  afterEach(() => browser?.closePages());
  after(async () => {
    await browser?.close();
    served?.close();
  });

  it('has a page for each document', () => {
    const documents = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.md'))
      .map((file) => (file === 'index.md' ? '/' : `/${file.replace(/\.md$/, '')}`));
    expect(documents).to.include.members(sections.flatMap(({ pages }) => Object.keys(pages).map((page) => `/${page}`)));
    expect([...site.pages.keys()].filter((path) => path !== '/404')).to.have.members(documents);
  });

  it('has no link, image or script that leads nowhere, and none to another host that the browser would load', () => {
    const [seals, none] = [site.pages.get('/seals'), 'leads to no heading of its page'];
    if (seals === undefined) throw new Error('there is no page on seals');
    expect([site.faultOf(seals, '#none'), site.faultOf(seals, './runbook#none'), site.faultOf(seals, '/none')]).to.deep.equal([
      ...[none, none],
      'leads to no page and no file',
    ]);
    const links = [...site.pages.values()].flatMap((page) => page.targets.map((target) => ({ page, target })));
    const faults = links.flatMap(({ page, target }) => {
      const fault = site.faultOf(page, target);
      return fault === undefined ? [] : [`${page.path}: ${target} ${fault}`];
    });
    expect(links.length).to.be.greaterThan(1000);
    expect(faults).to.deep.equal([]);
  });

  /** Opens a page of the site. It may load nothing from another host. */
  const open = async (path: string): Promise<Page> => {
    const page = await browser.open(served.address, {}, path);
    page.on('request', (request) => {
      if (!request.url().startsWith(served.address)) browser.faults.push(`${path} loads ${request.url()}`);
    });
    return page;
  };
  const headingOf = async (page: Page): Promise<string> => (await page.locator('main h1').first().innerText()).trim();

  it('shows every page of its navigation in a browser, also by a click, without an error', async () => {
    const page = await open('/');
    for (const { title, pages } of sections)
      for (const path of Object.keys(pages).map((page) => `/${page}`)) {
        await page.goto(`${served.address}${path}`);
        const [expected = ''] = (site.pages.get(path)?.title ?? '').split(' | ');
        expect(await headingOf(page), `${title}: ${path}`).to.contain(expected);
      }
    await page.goto(served.address);
    await page.getByRole('main').getByRole('link', { name: 'Seals', exact: true }).click();
    await page.waitForURL(/\/seals$/);
    // The address changes before the page is drawn.
    await page.locator('main h1').filter({ hasText: 'Seals' }).waitFor();
  });

  it('draws diagrams', async () => {
    const page = await open('/seals');
    await page.locator('main svg').getByText('May a restarted node wait for people?').first().waitFor();
  });

  it('finds a page by a word in its text', async () => {
    const page = await open('/');
    await page.getByRole('button', { name: 'Search' }).first().click();
    await page.getByRole('searchbox').fill('C_GenerateRandom');
    await page.getByRole('option').filter({ hasText: 'Random bytes' }).first().click();
    await page.waitForURL(/\/seals#random-bytes$/);
  });
});
