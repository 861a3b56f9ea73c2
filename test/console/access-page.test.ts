// @live
// The page of rights in a real browser: the caller's token, reasons of denials, policies, auth methods, seal and audit; and hostile texts.
import { generateKeyPairSync, sign } from 'node:crypto';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { ConsoleBrowser, expectAccessible, keepScreenshot, phone, signIn } from './browser.ts';

const attack = '<img src=x onerror="window.attacked=1">';
const reader = 'path "transit/*" {\n  capabilities = ["read", "update"]\n}\n';
const orders = 'path "transit/encrypt/orders" {\n  capabilities = ["deny"]\n}\n';

describe('the rights in the console', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  let browser: ConsoleBrowser;
  before(async () => {
    [server, browser] = await Promise.all([bench.start({ dataDir: bench.folder() }), ConsoleBrowser.launch()]);
    for (const [name, policy] of [
      ['reader', reader],
      ['no-orders', orders],
    ] as const)
      await server.call('POST', `sys/policies/acl/${name}`, { policy });
  });
  afterEach(() => browser.closePages());
  after(async () => {
    await browser?.close();
    await bench.clean();
  });

  const open = async (token = server.rootToken): Promise<Page> => {
    const page = await browser.open(server.url);
    await signIn(page, token);
    await page.getByRole('link', { name: 'Access' }).click();
    return page;
  };
  const tokenWith = async (...policies: readonly string[]) => {
    const created = await server.call('POST', 'auth/token/create', { policies, display_name: attack });
    return { token: created.string('auth.client_token'), accessor: created.string('auth.accessor') };
  };
  const ask = async (page: Page, accessor: string, path: string, capability: string): Promise<void> => {
    await page.getByLabel('Accessor of the token').fill(accessor);
    await page.getByLabel('Path', { exact: true }).fill(path);
    await page.getByLabel('Request').selectOption(capability);
    await page.getByRole('button', { name: 'Explain' }).click();
  };

  it('explains why a token is denied, by the evaluator of the node', async () => {
    const { accessor } = await tokenWith('reader', 'no-orders');
    const page = await open();
    await ask(page, accessor, '/v1/transit/encrypt/orders', 'update');
    await page.getByText('Denied.').waitFor();
    await page.getByText('Policy no-orders has the rule "transit/encrypt/orders", which denies it.').waitFor();
    await page.getByText('Policy reader has the rule "transit/*"; it does not count here').waitFor();
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      await expectAccessible(page, `rights, ${colorScheme}`);
    }
    await keepScreenshot(page, 'access-light');
    await ask(page, accessor, 'transit/encrypt/invoices', 'update');
    await page.getByText('Allowed.').waitFor();
    await page.getByText('Policy reader has the rule "transit/*", which grants read, update.').waitFor();
    await ask(page, accessor, 'sys/seal', 'update');
    await page.getByText('No policy of the token has a rule for this path').waitFor();
    await server.call('POST', 'sys/policies/acl/sealer', { policy: 'path "sys/seal" { capabilities = ["update"] }' });
    await ask(page, (await tokenWith('sealer')).accessor, 'sys/seal', 'update');
    await page.getByText('This request needs sudo as well, which is not granted.').waitFor();
    await page.getByText('Denied.').waitFor();
    await ask(page, '', 'sys/seal', 'sudo');
    await page.getByText('It is a root token').waitFor();
    await page.setViewportSize(phone);
    await expectAccessible(page, 'rights on a phone');
    const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
    expect(overflow, 'pixels beyond the width of a phone').to.equal(0);
  });

  it('reads a policy, and validates a text with line and column, without writing it', async () => {
    const page = await open();
    await page.getByRole('button', { name: 'reader', exact: true }).click();
    const text = page.locator('textarea[name=policy]');
    await page.getByText('of reader').waitFor();
    expect(await text.inputValue()).to.equal(reader);
    await page.getByRole('button', { name: 'Validate' }).click();
    await page.getByText('Valid, with 1 rule.').waitFor();
    await text.fill(`${reader}path "x" {\n  capabilites = ["read"]\n}`);
    await page.getByRole('button', { name: 'Validate' }).click();
    await page.getByText(/failed to parse policy: .*5/).waitFor();
    expect((await server.call('GET', 'sys/policies/acl/reader')).at('data.policy')).to.equal(reader);
  });

  it('signs in with a JWT, and says why one is refused', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const jwtFor = (aud: string): string => {
      const exp = Math.floor(Date.now() / 1000) + 600;
      const signed = `${part({ alg: 'ES256', typ: 'JWT' })}.${part({ iss: 'https://issuer.example', sub: 'ada', aud, exp })}`;
      return `${signed}.${sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
    };
    await server.call('POST', 'sys/auth/jwt', { type: 'jwt' });
    const pem = publicKey.export({ type: 'spki', format: 'pem' });
    const keys = { jwt_validation_pubkeys: [pem], jwt_supported_algs: ['ES256'] };
    const config = { ...keys, bound_issuer: 'https://issuer.example', default_role: 'people' };
    expect((await server.call('POST', 'auth/jwt/config', config)).status).to.be.oneOf([200, 204]);
    const role = { role_type: 'jwt', user_claim: 'sub', bound_audiences: ['console'], token_policies: ['reader'] };
    expect((await server.call('POST', 'auth/jwt/role/people', role)).status).to.be.oneOf([200, 204]);
    const page = await browser.open(server.url);
    await page.getByLabel('JWT', { exact: true }).and(page.locator('input[type=radio]')).check();
    await expectAccessible(page, 'the form for a JWT');
    await page.locator('input[name=jwt]').fill(jwtFor('elsewhere'));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('The JWT was refused: ').waitFor();
    await page.locator('input[name=jwt]').fill(jwtFor('console'));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation').waitFor();
  });

  it('edits a policy and writes it under its name or another one', async () => {
    await server.call('POST', 'sys/policies/acl/edited', { policy: reader });
    const page = await open();
    await page.getByRole('button', { name: 'edited', exact: true }).click();
    const text = page.locator('textarea[name=policy]');
    await page.getByText('of edited').waitFor();
    const changed = 'path "transit/keys/a" {\n  capabilities = ["read"]\n}';
    await text.fill('path "x" {');
    await page.getByRole('button', { name: 'Replace the policy' }).click();
    await page.getByText('edited was not written: failed to parse policy').waitFor();
    await text.fill(changed);
    await page.getByRole('button', { name: 'Replace the policy' }).click();
    await page.getByText('Written: edited.').waitFor();
    await page.getByLabel('Write as').fill('team/copied');
    await page.getByRole('button', { name: 'Create the policy' }).click();
    await page.getByText('Written: team/copied.').waitFor();
    for (const name of ['edited', 'team/copied'])
      expect((await server.call('GET', `sys/policies/acl/${name}`)).at('data.policy')).to.equal(changed);
    await expectAccessible(page, 'a policy that was written');
  });

  it('shows hostile names, policies and display names as text', async () => {
    await server.call('POST', `sys/policies/acl/${encodeURIComponent(attack)}`, { policy: `# ${attack}\n${reader}` });
    const { token, accessor } = await tokenWith(attack);
    const page = await open();
    await page.getByRole('button', { name: attack }).click();
    await page.getByText(`of ${attack}`).waitFor();
    await ask(page, accessor, 'transit/keys/a', 'read');
    await page.getByText(`Policy ${attack} has the rule "transit/*"`).waitFor();
    expect(await page.locator('img').count()).to.equal(0);
    const own = await open(token);
    await own.getByText(attack).first().waitFor();
    for (const each of [page, own]) expect(await each.evaluate('window.attacked ?? 0')).to.equal(0);
  });

  it('shows characters that would reorder the page as escapes', async () => {
    const hidden = [...Array.from({ length: 5 }, (_, i) => 0x202a + i), ...Array.from({ length: 4 }, (_, i) => 0x2066 + i)];
    const name = `a${String.fromCodePoint(...hidden)}b`;
    const shown = `a${hidden.map((code) => `\\u{${code.toString(16)}}`).join('')}b`;
    await server.call('POST', `sys/policies/acl/${encodeURIComponent(name)}`, { policy: `${reader}# ${name}` });
    const page = await open();
    await page.getByRole('button', { name: shown, exact: true }).click();
    await page.getByText(`of ${shown}`).waitFor();
    await page.getByText(`Line 4 has hidden characters: # ${shown}`).waitFor();
    const { accessor } = await tokenWith(name);
    await ask(page, accessor, 'transit/keys/a', 'read');
    await page.getByText(`Policy ${shown} has the rule "transit/*"`).waitFor();
    expect(await page.evaluate('document.body.innerText')).not.to.match(/\p{Cf}/u);
  });

  it('shows the auth methods with their configuration and roles, hostile ones as text', async () => {
    const description = `${attack} a\u202eb`;
    const write = async (path: string, body: object): Promise<void> => {
      expect((await server.call('POST', path, body)).status, path).to.be.oneOf([200, 204]);
    };
    for (const type of ['jwt', 'kubernetes', 'approle', 'userpass', 'cert'])
      await write(`sys/auth/team/${type}`, { type, description: type === 'jwt' ? description : '' });
    const pem = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ type: 'spki', format: 'pem' });
    await write('auth/team/jwt/config', {
      jwt_validation_pubkeys: [pem],
      jwt_supported_algs: ['RS256'],
      bound_issuer: 'a\u2066b',
    });
    const role = { role_type: 'jwt', user_claim: 'sub', bound_audiences: ['console'], bound_subject: attack };
    await write('auth/team/jwt/role/people', role);
    await write('auth/team/jwt/role/robots', { ...role, bound_subject: 'robot' });
    await write('auth/team/userpass/users/ada', { password: 'not to be shown', token_policies: ['reader'] });
    await write('auth/team/approle/role/batch', { token_num_uses: 17 });
    const page = await open();
    const part = page.getByRole('region', { name: 'Auth methods' });
    const choose = (name: string) => part.getByRole('button', { name, exact: true }).click();
    await part.getByRole('row', { name: `team/jwt/ jwt ${attack} a\\u{202e}b` }).waitFor();
    await choose('team/jwt/');
    await part.getByRole('row', { name: 'bound_issuer a\\u{2066}b' }).waitFor();
    await part.getByRole('row', { name: /^jwt_validation_pubkeys .*BEGIN PUBLIC KEY.* … \d+ more characters$/ }).waitFor();
    await choose('people');
    await part.getByRole('row', { name: `bound_subject ${attack}` }).waitFor();
    await part.getByRole('row', { name: 'bound_audiences ["console"]' }).waitFor();
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      await expectAccessible(page, `auth methods, ${colorScheme}`);
    }
    await page.setViewportSize(phone);
    await expectAccessible(page, 'auth methods on a phone');
    const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
    expect(overflow, 'pixels beyond the width of a phone').to.equal(0);
    await choose('robots');
    await part.getByRole('row', { name: 'bound_subject robot' }).waitFor();
    expect(await part.getByRole('row', { name: `bound_subject ${attack}` }).count(), 'settings of the former role').to.equal(0);
    await choose('team/userpass/');
    await choose('ada');
    await part.getByRole('row', { name: 'token_policies ["reader"]' }).waitFor();
    await choose('team/approle/');
    await choose('batch');
    await part.getByRole('row', { name: 'token_num_uses 17' }).waitFor();
    await choose('team/kubernetes/');
    await part.getByRole('heading', { name: 'auth/team/kubernetes/config' }).waitFor();
    await part.getByText('there is nothing here').nth(1).waitFor();
    await choose('team/cert/');
    await part.getByRole('heading', { name: 'auth/team/cert/certs' }).waitFor();
    await part.getByText('there is nothing here').waitFor();
    expect(await page.locator('img').count()).to.equal(0);
    expect(await page.evaluate('window.attacked ?? 0')).to.equal(0);
    expect(await page.evaluate('document.body.innerText')).not.to.match(/\p{Cf}|not to be shown/u);
    await server.call('POST', 'sys/policies/acl/lister', { policy: 'path "sys/auth" { capabilities = ["read", "sudo"] }' });
    const lister = (await open((await tokenWith('lister')).token)).getByRole('region', { name: 'Auth methods' });
    await lister.getByRole('button', { name: 'team/jwt/', exact: true }).click();
    await lister.getByText('your token may not read this').nth(1).waitFor();
  });

  it('shows its own token, the seal and the audit devices, and says what the token may not read', async () => {
    const { token, accessor } = await tokenWith('reader');
    const page = await open(token);
    await page.getByText(accessor).waitFor();
    await page.getByText('default, reader').waitFor();
    await page.getByText('unsealed').waitFor();
    await page.getByText('your token may not read this').first().waitFor();
    await page.getByText('The policies cannot be listed').waitFor();
    const root = await open();
    await root.getByText('This node has no audit device').waitFor();
    await root.getByText('Key term of the barrier').waitFor();
  });

  it('lists the audit devices', async () => {
    const device = { path: 'main/', type: 'file', options: { file_path: `/var/log/${attack}` } };
    const page = await open();
    await page.getByRole('link', { name: 'Cluster' }).click();
    await page.route(/\/v1\/sys\/audit$/, (route) => route.fulfill({ json: { data: { 'main/': device } } }));
    await page.getByRole('link', { name: 'Access' }).click();
    await page.getByRole('row', { name: `main file /var/log/${attack}` }).waitFor();
  });
});
