// @live
// The page of the keys in a real browser: names, versions, changes with their previews, operations, and names that try to be HTML.
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { type LiveServer, nodeBinary, processMs, Workbench } from '../process/live-server.ts';
import { ConsoleBrowser, expectAccessible, keepScreenshot, phone, signIn } from './browser.ts';

const manyKeys = 100_000;
const attack = '<img src=x onerror="window.attacked=1">';

describe('the keys in the console', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  let browser: ConsoleBrowser;
  before(async () => {
    [server, browser] = await Promise.all([bench.start({ dataDir: bench.folder() }), ConsoleBrowser.launch()]);
    for (const [name, body] of [
      ['orders', {}],
      ['invoices', { type: 'ed25519' }],
      ['per-customer', { derived: true }],
    ] as const)
      await server.call('POST', `transit/keys/${name}`, body);
    for (let version = 2; version <= 4; version++) await server.call('POST', 'transit/keys/orders/rotate');
  });
  afterEach(() => browser.closePages());
  after(async () => {
    await browser?.close();
    await bench.clean();
  });

  const open = async (hash: string, token = server.rootToken): Promise<Page> => {
    const page = await browser.open(server.url);
    await signIn(page, token);
    await page.goto(`${server.url}/ui/${hash}`);
    return page;
  };
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

  it('lists the keys of a mount, finds one, and shows its settings and versions', async () => {
    const page = await open('#/keys');
    await page.getByLabel('Search').fill('ORD');
    await page.getByText('1 key', { exact: true }).waitFor();
    await page.getByLabel('Search').press('Enter');
    await page.getByRole('heading', { name: 'orders' }).waitFor();
    await page.getByRole('row', { name: /^4 .* encrypts and decrypts$/ }).waitFor();
    await page.getByRole('row', { name: /^1 .* decrypts and verifies only$/ }).waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await expectAccessible(page, `a key, ${colorScheme}`);
    }
    await keepScreenshot(page, 'keys-dark');
    await page.setViewportSize(phone);
    await expectAccessible(page, 'a key on a phone');
    const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
    expect(overflow, 'pixels beyond the width of a phone').to.equal(0);
    await page.getByRole('link', { name: 'All keys of transit' }).click();
    await page.getByRole('link', { name: 'orders' }).waitFor(); // the search stays
  });

  it('says that a mount is empty, and creates its first key with the chosen type and flags', async () => {
    await server.call('POST', 'sys/mounts/vacant', { type: 'transit' });
    const page = await open('#/keys/vacant');
    await page.getByText('There is no key on this mount yet.').waitFor();
    await button(page, 'Create a key …').click();
    await page.getByLabel('Name of the key').fill('first');
    await page.getByLabel('Type').selectOption('chacha20-poly1305');
    await page.getByLabel('Derive a key for each context').check();
    await expectAccessible(page, 'the form for a new key');
    await button(page, 'Create').click();
    await page.getByRole('heading', { name: 'first' }).waitFor();
    await page.getByRole('link', { name: 'first' }).waitFor();
    const created = (await server.call('GET', 'vacant/keys/first')).at('data');
    expect(created).to.include({ type: 'chacha20-poly1305', derived: true, exportable: false, allow_plaintext_backup: false });
    await button(page, 'Create a key …').click();
    await page.getByLabel('Name of the key').fill('not/a/name');
    await button(page, 'Create').click();
    await page.getByRole('alert').waitFor();
  });

  it('warns before a sign-in that the node is sealed', async () => {
    const sealed = await bench.start({ dataDir: bench.folder() });
    const page = await browser.open(sealed.url);
    await page.getByText('Reloading the page signs you out').waitFor();
    expect(await page.getByText('This node is sealed').count()).to.equal(0);
    expect((await sealed.call('POST', 'sys/seal')).status).to.equal(204);
    await page.getByText('This node is sealed, so nobody can sign in here.').waitFor();
    await expectAccessible(page, 'the page that signs in at a sealed node');
  });

  it('follows an address that changes while the first page is drawn', async () => {
    const page = await browser.open(server.url);
    await page.evaluate(`new MutationObserver((_, observer) => {
      if (document.querySelector('nav') === null) return;
      observer.disconnect();
      location.hash = '#/keys/transit/orders';
    }).observe(document, { childList: true, subtree: true })`);
    await signIn(page, server.rootToken);
    await page.getByRole('heading', { name: 'orders' }).waitFor();
  });

  it('shows the effect of a rotation, of minimums and of a trim before it does them', async () => {
    const page = await open('#/keys/transit/orders');
    await button(page, 'Delete old versions …').click();
    await page.getByLabel('Oldest version to keep').fill('3');
    await page.getByText('First raise the minimum version for decryption to 3 or more.').waitFor();
    expect(await button(page, 'Delete permanently').isDisabled()).to.equal(true);
    await button(page, 'Minimum versions …').click();
    await page.getByLabel('Oldest version that decrypts and verifies').fill('3');
    await page.getByLabel('Oldest version that encrypts and signs (0: latest only)').fill('3');
    await page.getByText('Ciphertexts of versions 1 to 2 no longer decrypt').waitFor();
    await expectAccessible(page, 'a preview');
    await keepScreenshot(page, 'keys-light');
    const days = page.getByLabel('Refuse if one that goes was used within days (0: do not ask)');
    await button(page, 'Set the minimums').click();
    await page.getByText(/^Refused: unless_used_within: /).waitFor(); // by default, the use of 30 days
    await days.fill('0');
    await button(page, 'Set the minimums').click();
    await page.getByText('Done.').waitFor();
    await button(page, 'Delete old versions …').click();
    await page.getByText('The material of versions 1 to 2 is deleted permanently.').waitFor();
    expect(await button(page, 'Delete permanently').getAttribute('class')).to.equal('danger');
    await button(page, 'Delete permanently').click();
    await page.getByText(/^Refused: unless_used_within: /).waitFor();
    await days.fill('0');
    await button(page, 'Delete permanently').click();
    await page.getByText('Versions 1 to 2 were deleted.').waitFor();
    await button(page, 'Rotate …').click();
    await page.getByText('Version 5 is created').waitFor();
    expect(await button(page, 'Rotate').getAttribute('class'), 'deletes nothing').to.equal('main');
    await button(page, 'Rotate').click();
    await page.getByRole('row', { name: /^5 / }).waitFor();
    await button(page, 'Let versions age …').click();
    await page.getByLabel('Versions that decrypt and verify (0: no limit)').fill('2');
    await page.getByLabel('Hours until the others are deleted (0: never)').fill('48');
    await page.getByText('Ciphertexts of version 3 no longer decrypt').waitFor();
    await button(page, 'Set the limits').click();
    await page.getByText(/^Refused: unless_used_within: /).waitFor();
    await days.fill('0');
    await button(page, 'Set the limits').click();
    await page.getByText('after 2 d', { exact: true }).waitFor();
    const { text: answer } = await server.call('GET', 'transit/keys/orders');
    expect(JSON.parse(answer).data).to.deep.include({ latest_version: 5, min_available_version: 3, min_decryption_version: 4 });
    expect(JSON.parse(answer).data).to.deep.include({ keep_decryption_versions: 2, trim_after: 172_800 });
  });

  it('changes nothing for a token without the right, and says so', async () => {
    const policy = 'path "transit/keys/orders" { capabilities = ["read"] }';
    await server.call('POST', 'sys/policies/acl/reader', { policy });
    const created = await server.call('POST', 'auth/token/create', { policies: ['reader'] });
    const page = await open('#/keys/transit', created.string('auth.client_token'));
    await page.getByText('Your token may not list the keys of this mount.').waitFor();
    await page.getByLabel('Search').fill('orders');
    await page.getByLabel('Search').press('Enter');
    await button(page, 'Rotate …').click();
    await button(page, 'Rotate').click();
    await page.getByText('Your token may not do this.').waitFor();
    await page.getByLabel('Plaintext').fill('hello');
    await button(page, 'encrypt').click();
    await page.getByText('your token may not do this').last().waitFor();
  });

  it('encrypts and decrypts, signs and verifies, and computes HMACs', async () => {
    const page = await open('#/keys/transit/orders');
    await page.getByLabel('Plaintext').fill('héllo');
    await button(page, 'encrypt').click();
    await page.locator('.result', { hasText: 'svc:v' }).waitFor();
    await page.getByLabel('decrypt', { exact: true }).check();
    await button(page, 'decrypt').click();
    await page.locator('.result', { hasText: 'héllo' }).waitFor();
    await page.goto(`${server.url}/ui/#/keys/transit/invoices`);
    for (const [make, check, label] of [
      ['sign', 'verify signature', 'Signature'],
      ['hmac', 'verify HMAC', 'HMAC'],
    ] as const) {
      await page.getByLabel(make, { exact: true }).check();
      await page.getByLabel('Message').fill('pay 100');
      await button(page, make).click();
      await page.locator('.result', { hasText: 'svc:v' }).waitFor();
      await page.getByLabel(check, { exact: true }).check();
      await button(page, check).click();
      await page.getByText('Valid', { exact: false }).first().waitFor();
      await page.getByLabel('Message').fill('pay 900');
      await button(page, check).click();
      await page.getByText('Not valid').waitFor();
      expect(await page.getByLabel(label, { exact: true }).inputValue()).to.match(/^svc:v/);
    }
    await page.goto(`${server.url}/ui/#/keys/transit/per-customer`);
    await page.getByLabel('Plaintext').fill('x');
    await page.getByLabel('Context').fill('customer 7');
    await button(page, 'encrypt').click();
    await page.locator('.result', { hasText: 'svc:v' }).waitFor();
  });

  it('shows the same request as programs, which run unchanged', async () => {
    const page = await open('#/keys/transit/orders');
    await page.getByLabel('Plaintext').fill(`it's "$(id)" & <b>`);
    for (const [language, command, args] of [
      ['curl', 'sh', ['-c']],
      ['TypeScript', nodeBinary, ['--input-type=module-typescript', '-e']],
      ['Python', 'python3', ['-c']],
    ] as const) {
      await page.getByLabel(language).check();
      const program = (await page.locator('#program').textContent()) ?? '';
      expect(program).not.to.include(server.rootToken);
      const child = spawn(command, [...args, program], {
        env: { ...process.env, TRANSITD_TOKEN: server.rootToken },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const ciphertext = /svc:v\d+:[\w+/=]+/.exec(await text(child.stdout))?.[0];
      const opened = await server.call('POST', 'transit/decrypt/orders', { ciphertext });
      expect(Buffer.from(opened.string('data.plaintext'), 'base64').toString(), language).to.equal(`it's "$(id)" & <b>`);
    }
  });

  it(`pages and searches ${manyKeys} names at once, hostile ones as text`, async () => {
    const names = [attack, ...Array.from({ length: manyKeys - 1 }, (_, n) => `key-${String(n).padStart(6, '0')}`)];
    const page = await open('#/cluster');
    let requests = 0;
    await page.route(/\/v1\/transit\/keys\?/, (route) => {
      const query = new URL(route.request().url()).searchParams;
      const at = names.indexOf(query.get('after') ?? '') + 1;
      const keys = names.slice(at, at + Number(query.get('limit')));
      requests += 1;
      return keys.length === 0
        ? route.fulfill({ status: 404, json: { errors: [] } })
        : route.fulfill({ json: { data: { keys }, warnings: [attack] } });
    });
    await page.route(/\/v1\/transit\/keys\/./, (route) => route.fulfill({ status: 400, json: { errors: [attack] } }));
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByText('100,000 keys', { exact: true }).waitFor();
    expect(requests).to.be.at.most(8);
    await page.getByText('1 of 1,000').waitFor();
    await button(page, 'Next').click();
    await page.getByRole('link', { name: 'key-000099' }).waitFor();
    await page.getByLabel('Search').fill('99998');
    await page.getByRole('status').getByText('1 key', { exact: true }).waitFor();
    expect(await page.locator('.names li').count()).to.equal(1);
    const before = requests;
    // The time of five searches, as a multiple of five passes over as many names. Each time is the shortest of several, because a machine
    // may stall.
    const ratio = await page.evaluate(`(() => {
      const timed = async (task) => {
        const began = performance.now();
        await task();
        return performance.now() - began;
      };
      const texts = ['key', 'key-0', 'key-09', 'key-099', 'img'];
      const names = Array.from({ length: ${manyKeys} }, (_, n) => 'key-' + n);
      const search = document.querySelector('input[type=search]');
      const pass = () => texts.map((text) => names.filter((name) => name.toLowerCase().includes(text)).length);
      const type = async () => {
        for (const text of texts) {
          search.value = text;
          search.dispatchEvent(new Event('input', { bubbles: true }));
          await new Promise((resolve) => setTimeout(resolve));
        }
      };
      const shortest = async (task) => {
        const times = [];
        for (let run = 0; run < 5; run++) times.push(await timed(task));
        return Math.min(...times);
      };
      return shortest(pass).then(async (plain) => (await shortest(type)) / plain);
    })()`);
    console.log(`      five searches take ${Number(ratio).toFixed(1)} times as long as five passes over the names`);
    expect(ratio).to.be.lessThan(20);
    expect(requests, 'a search asks the node for nothing').to.equal(before);
    const link = page.getByRole('link', { name: attack });
    await link.click();
    await page.getByText(`cannot be read: ${attack}`).waitFor();
    expect(await page.evaluate('window.attacked ?? 0')).to.equal(0);
    expect(await page.locator('main img').count()).to.equal(0);
    await expectAccessible(page, 'a hostile name');
  });
});
