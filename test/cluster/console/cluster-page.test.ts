// @live
// The console in a real browser, against a live cluster: signing in, the page of the cluster, and a leader that dies while someone watches.
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import type { Page, Request } from 'playwright-core';
import {
  ConsoleBrowser,
  expectAccessible,
  keepScreenshot,
  makesScreenshots,
  phone,
  signIn,
  untilSignedIn,
} from '../../console/browser.ts';
import { LiveCluster } from '../harness/live-cluster.ts';
import type { LiveNode } from '../harness/live-node.ts';
import { scenarioMs } from '../harness/scenario.ts';
import { until } from '../harness/until.ts';

const auditorPolicy = 'path "sys/nodes" { capabilities = ["read"] }';
const password = 'correct horse battery staple';

describe('the console', function () {
  this.timeout(scenarioMs);
  let cluster: LiveCluster;
  let browser: ConsoleBrowser;
  before(async () => {
    [cluster, browser] = await Promise.all([
      LiveCluster.formed({ elections: 'shipped', config: { ui: true } }),
      ConsoleBrowser.launch(),
    ]);
    const root = (path: string, body: object) => cluster.askWhenLed(cluster.node(1), 'POST', path, body);
    await root('sys/policies/acl/auditor', { policy: auditorPolicy });
    await root('sys/auth/userpass', { type: 'userpass' });
    await root('auth/userpass/users/ann', { password, token_policies: ['auditor'] });
  });
  afterEach(() => browser.closePages());
  after(async () => {
    await browser?.close();
    await cluster?.end();
  });

  const tokenWith = async (body: object): Promise<string> => {
    const answer = await cluster.askWhenLed(cluster.node(1), 'POST', 'auth/token/create', body);
    return answer.string('auth.client_token');
  };
  const isValid = async (token: string): Promise<boolean> =>
    (await cluster.node(1).ask('GET', 'auth/token/lookup-self', { token })).status === 200;
  /** Encrypts through a node until it is stopped, so that the plots have something to show. */
  const encryptions = (node: LiveNode) => {
    let isStopped = false;
    const ended = (async () => {
      while (!isStopped) {
        await cluster.ask(node, 'POST', 'transit/encrypt/orders', { plaintext: 'aGVsbG8=' }).catch(() => undefined);
        await delay(10);
      }
    })();
    const stop = (): Promise<void> => {
      isStopped = true;
      return ended;
    };
    cluster.bears({ stop });
    return { stop };
  };
  /** Waits until a plot has this many points. */
  const points = (page: Page, count: number) =>
    until(`a plot has ${count} points`, async () => {
      const path = await page.locator('.plot .tone-1.line').first().getAttribute('d');
      return (path ?? '').split(/[ML]/).length > count;
    });
  const row = (page: Page, name: string) => page.getByRole('row', { name: new RegExp(`^${name}\\b`) }).first();
  const expectHealthy = async (page: Page): Promise<void> => {
    await page.locator('#verdict').getByText('healthy', { exact: true }).waitFor();
  };

  it('signs in by token, and keeps the token out of the URL, the cookies and the storage', async () => {
    const page = await browser.open(cluster.node(2).apiAddress);
    await expectAccessible(page, 'the page that signs in');
    await page.locator('input[name=token]').fill('s.wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('This token is not valid').waitFor();
    await signIn(page, cluster.rootToken);
    await expectHealthy(page);
    const kept = await page.evaluate(`JSON.stringify([
      location.href, document.cookie, Object.entries(localStorage), Object.entries(sessionStorage), history.state
    ])`);
    expect(kept).not.to.include(cluster.rootToken);
    expect(await page.context().cookies()).to.deep.equal([]);
    await page.reload();
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
  });

  it('links to the consoles of the other nodes, and explains the terms of its columns', async () => {
    const page = await browser.open(cluster.node(1).apiAddress);
    await signIn(page, cluster.rootToken);
    await expectHealthy(page);
    const names = page.locator('#nodes-title ~ table a.name');
    expect(await names.evaluateAll((links) => links.map((link) => link.getAttribute('href')).sort())).to.deep.equal(
      [2, 3].map((number) => `${cluster.node(number).apiAddress}/ui/`).sort(),
    );
    await page.getByText('Terms of the columns').click();
    for (const text of ['Number of the election.', 'a majority has stored', 'Time from a heartbeat'])
      await page.getByText(text).waitFor();
    await expectAccessible(page, 'the terms');
  });

  it('signs in by name and password with the keyboard alone, and revokes the token of that login', async () => {
    const page = await browser.open(cluster.node(3).apiAddress);
    const tokens: string[] = [];
    page.on('request', (request) => {
      const token = request.headers()['x-service-token']; // the console asks for health and replication without one
      if (token !== undefined) tokens.push(token);
    });
    await page.locator('input[name=token]').focus();
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('ArrowRight');
    await page.locator('input[name=name]').waitFor();
    for (const text of ['ann', password]) {
      await page.keyboard.press('Tab');
      await page.keyboard.type(text);
    }
    await untilSignedIn(page, () => page.keyboard.press('Enter'));
    await expectHealthy(page);
    const token = tokens.at(-1) ?? '';
    expect(await isValid(token)).to.equal(true);
    const revoked = page.waitForResponse((response) => response.url().endsWith('auth/token/revoke-self'));
    await page.getByRole('button', { name: 'Sign out' }).press('Enter');
    await revoked;
    await page.locator('input[name=token]').waitFor();
    expect(await isValid(token)).to.equal(false);
  });

  it('shows every node through any node, to a token that may read nothing else', async () => {
    const token = await tokenWith({ policies: ['auditor'], no_default_policy: true });
    for (const node of cluster.nodes) {
      const page = await browser.open(node.apiAddress);
      await signIn(page, token);
      await expectHealthy(page);
      for (const { name } of cluster.nodes)
        await row(page, name)
          .getByText(/^(active|performance standby)$/)
          .waitFor();
      expect(await row(page, node.name).textContent()).to.include('this node');
    }
  });

  it('follows one stream, which stops while the page is in the background', async () => {
    const page = await browser.open(cluster.node(2).apiAddress);
    /** Streams since the start, present ones, and the most at once. A stream that is silent for seconds is replaced by another one. */
    const streams = { asked: 0, open: 0, most: 0 };
    const isStream = (request: Request): boolean => request.url().includes('/v1/sys/nodes');
    page.on('request', (request) => {
      if (!isStream(request)) return;
      streams.asked += 1;
      streams.open += 1;
      streams.most = Math.max(streams.most, streams.open);
    });
    for (const end of ['requestfinished', 'requestfailed'] as const)
      page.on(end as 'requestfailed', (request: Request) => {
        if (isStream(request)) streams.open -= 1;
      });
    await signIn(page, await tokenWith({ policies: ['auditor'] }));
    await points(page, 4);
    expect(streams.most).to.equal(1);
    expect(streams.asked, 'requests for four points').to.be.below(4);
    const hidden = async (isHidden: boolean): Promise<void> => {
      await page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`);
    };
    await hidden(true);
    await until('the stream has ended', () => streams.open === 0);
    const { asked } = streams;
    await hidden(false);
    await points(page, 6);
    expect(streams.most).to.equal(1);
    expect(streams.asked, 'requests since the page is visible again').to.be.within(asked + 1, asked + 2);
  });

  it('says that its node is frozen, and goes on when it is not', async () => {
    const [frozen = cluster.node(1)] = cluster.others(await cluster.settled());
    const page = await browser.open(frozen.apiAddress);
    await signIn(page, cluster.rootToken);
    await expectHealthy(page);
    frozen.pause();
    await page.getByText('This node does not answer.').waitFor();
    frozen.resume();
    await expectHealthy(page);
    await page.getByText('This node does not answer.').waitFor({ state: 'detached' });
  });

  it('names the policy that is missing', async () => {
    const page = await browser.open(cluster.node(1).apiAddress);
    await signIn(page, await tokenWith({ policies: ['default'] }));
    await page.getByText('path "sys/nodes"').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  });

  it('returns to the page that signs in when the token expires', async () => {
    const page = await browser.open(cluster.node(1).apiAddress);
    const token = await tokenWith({ policies: ['auditor'], ttl: '1h', no_parent: true });
    await signIn(page, token);
    // A renewal for a shorter time: the token lives as long as the sign-in needs, and ends soon after it.
    const renewed = await cluster.askWhenLed(cluster.node(1), 'POST', 'auth/token/renew', { token, increment: '2s' });
    expect([renewed.status, renewed.at('auth.lease_duration')], renewed.text).to.deep.equal([200, 2]);
    await page.getByText('Your token is no longer valid.').waitFor();
    await page.locator('input[name=token]').waitFor();
  });

  it('can be read in light and dark, on a phone and on a wide screen', async () => {
    const page = await browser.open(cluster.node(1).apiAddress);
    await signIn(page, cluster.rootToken);
    await expectHealthy(page);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await expectAccessible(page, `the cluster, ${colorScheme}`);
    }
    for (const width of [320, phone.width, 768, 1280, 2560]) {
      await page.setViewportSize({ width, height: phone.height });
      const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
      expect(overflow, `pixels beyond a width of ${width}`).to.equal(0);
    }
    await page.setViewportSize(phone);
    await expectAccessible(page, 'the cluster on a phone');
    await keepScreenshot(page, 'cluster-phone');
  });

  it('shows a leader that dies and its successor, on a standby and on the dead node itself', async () => {
    const leader = await cluster.settled();
    const standby = cluster.others(leader)[0] ?? leader;
    const [watching, cutOff] = [await browser.open(standby.apiAddress), await browser.open(leader.apiAddress)];
    for (const page of [watching, cutOff]) {
      await signIn(page, cluster.rootToken);
      await expectHealthy(page);
    }
    const load = encryptions(standby);
    if (makesScreenshots) await points(watching, 40);
    await leader.kill();
    await cutOff.getByText('This node does not answer.').waitFor();
    await row(watching, leader.name).getByText('no answer').waitFor();
    const next = await cluster.leader(cluster.others(leader));
    await row(watching, next.name).getByText('active', { exact: true }).waitFor();
    await watching.getByText('no failure tolerated').waitFor();
    await watching.getByText(new RegExp(`${next.name} leads in term`)).waitFor();
    await expectAccessible(watching, 'the cluster without its leader');
    if (makesScreenshots) await points(watching, 58);
    await keepScreenshot(watching, 'cluster-light');
    await watching.emulateMedia({ colorScheme: 'dark' });
    await keepScreenshot(watching, 'cluster-dark');
    await load.stop();
    await leader.start();
    for (const page of [watching, cutOff]) await expectHealthy(page);
  });

  it('signs out everybody whose node forgets the token', async () => {
    const token = await tokenWith({ policies: ['auditor'] });
    const page = await browser.open(cluster.node(3).apiAddress);
    await signIn(page, token);
    await expectHealthy(page);
    await cluster.askWhenLed(cluster.node(1), 'POST', 'auth/token/revoke', { token });
    await page.getByText('Your token is no longer valid.').waitFor();
  });
});
