// A real browser for the tests of the console and of the documentation site. Every page fails its test if it logs an error or violates the
// content security policy.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { processMs, root } from '../process/live-server.ts';

const binaries = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Returns the path of this machine's browser. @throws if no browser is installed */
function browserBinary(): string {
  const found = binaries.find((path) => existsSync(path));
  if (found === undefined) throw new Error('these tests need a browser: install the Debian package chromium');
  return found;
}

/** Folder for screenshots; undefined in a run that only tests. */
const screenshots = process.env['CONSOLE_SCREENSHOTS'];
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const phone = { width: 390, height: 844 };

/** One browser, with the pages that a test opened. */
export class ConsoleBrowser {
  readonly #browser: Browser;
  readonly #contexts: BrowserContext[] = [];
  /** Errors of all pages: messages of the browser, exceptions and violations. */
  readonly faults: string[] = [];

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  static async launch(): Promise<ConsoleBrowser> {
    // Tests run as root in containers, where Chromium has no sandbox. The pages are those of this repository.
    const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'];
    return new ConsoleBrowser(await chromium.launch({ executablePath: browserBinary(), args, timeout: processMs }));
  }

  /** Opens a page with storage of its own. */
  async open(address: string, options: BrowserContextOptions = {}, path = '/ui/'): Promise<Page> {
    const context = await this.#browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
    this.#contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    page.on('console', (message) => {
      // The browser itself logs requests that are refused or whose node is down.
      if (message.type() === 'error' && !/^Failed to load resource/.test(message.text())) this.faults.push(message.text());
    });
    page.on('pageerror', (error) => this.faults.push(String(error)));
    await page.goto(`${address}${path}`);
    return page;
  }

  /** Closes all pages. @throws if one of them had an error */
  async closePages(): Promise<void> {
    for (const context of this.#contexts.splice(0)) await context.close();
    expect(this.faults.splice(0), 'errors in the browser').to.deep.equal([]);
  }

  async close(): Promise<void> {
    await this.#browser.close();
  }
}

/** Signs in with a token, and waits for the page behind it. */
export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Token', { exact: true }).and(page.locator('input[name=token]')).fill(token);
  await untilSignedIn(page, () => page.getByRole('button', { name: 'Sign in' }).click());
}

/** Calls `submit` until the page behind the form shows: while no node is active, a login is refused, and the form says so. */
export async function untilSignedIn(page: Page, submit: () => Promise<void>): Promise<void> {
  const [inside, failure] = [page.getByRole('navigation'), page.getByRole('alert').getByText('Signing in failed')];
  do {
    await submit();
    await inside.or(failure).first().waitFor();
  } while (!(await inside.isVisible()));
}

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly string[];
}

/** Checks the page against the rules of WCAG 2.2 at the levels A and AA. @throws if axe finds a violation */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  // Runs axe through the debugger, because the content security policy of the page forbids script elements.
  await page.evaluate(axeSource);
  const violations: readonly Violation[] = await page.evaluate(`
    axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then(({ violations }) =>
      violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ html }) => html) })))`);
  expect(violations, `${what}, by axe`).to.deep.equal([]);
}

/** Whether this run makes the screenshots for the documentation. */
export const makesScreenshots = screenshots !== undefined;

/** Saves a screenshot of the page for the documentation, if this run makes them. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  if (screenshots === undefined) return;
  await page.mouse.move(0, 0);
  await page.screenshot({ path: join(root, screenshots, `${name}.png`), animations: 'disabled' });
}
