// @live
import type { AuditDevices } from '@transitd/audit';
import { expect } from 'chai';
import { MemoryDevices } from '../memory-devices.ts';
import { type Served, served } from '../served.ts';

const acl = (name: string) => ({ name, namespace_id: 'root', namespace_path: '', type: 'acl' });
const plaintext = Buffer.from('a text').toString('base64');
const denied = '403 {"errors":["permission denied"]}\n';

describe('the policy results in audit entries', () => {
  let devices: MemoryDevices;
  let at: Served;
  beforeEach(async () => {
    devices = new MemoryDevices();
    at = await served({ audit: devices as unknown as AuditDevices });
    await at.ask('POST transit/keys/k');
  });
  afterEach(() => at.close());

  /** Creates a token with these policies, by name, and no others. */
  async function tokenWith(policies: Readonly<Record<string, string>>, settings: object = {}): Promise<string> {
    for (const [name, policy] of Object.entries(policies)) await at.ask(`POST sys/policies/acl/${name}`, { body: { policy } });
    const body = { policies: Object.keys(policies), no_default_policy: true, ...settings };
    return (await at.ask('POST auth/token/create', { body })).body.auth.client_token;
  }

  const path = (pattern: string, capabilities: string, more = ''): string =>
    `path "${pattern}" { capabilities = [${capabilities}] ${more} }`;
  const update = '"update"';

  for (const { what, policies, line = 'POST transit/encrypt/k', granting, rules } of [
    {
      what: 'an exact path',
      policies: { p: path('transit/encrypt/k', update) + path('transit/*', '"deny"') },
      granting: ['p'],
      rules: [{ policy: 'p', path: 'transit/encrypt/k' }],
    },
    {
      what: 'the longest prefix',
      policies: { p: path('transit/*', update), q: path('transit/encrypt/*', update) },
      granting: ['q'],
      rules: [{ policy: 'q', path: 'transit/encrypt/*' }],
    },
    {
      what: 'a pattern with +',
      policies: { p: path('transit/+/k', update), q: path('transit/+/*', '"read"') },
      granting: ['p'],
      rules: [{ policy: 'p', path: 'transit/+/k' }],
    },
    {
      what: 'several policies, of which some do not have the capability',
      policies: {
        a: path('transit/encrypt/k', update),
        b: path('transit/encrypt/k', '"read"'),
        c: path('transit/encrypt/k', '"create", "update"'),
      },
      granting: ['a', 'c'],
      rules: ['a', 'c'].map((policy) => ({ policy, path: 'transit/encrypt/k' })),
    },
    {
      what: 'create alone, of one policy, for a name that is free',
      policies: { a: path('transit/encrypt/new', '"create"'), b: path('transit/encrypt/new', '"list"') },
      line: 'POST transit/encrypt/new',
      granting: ['a'],
      rules: [{ policy: 'a', path: 'transit/encrypt/new' }],
    },
    {
      what: 'a rule for a path, which lists too',
      policies: { p: path('transit/keys/', '"list"', 'pagination_limit = 5') },
      line: 'GET transit/keys?list=true',
      granting: ['p'],
      rules: [{ policy: 'p', path: 'transit/keys/' }],
    },
    {
      what: 'sudo and the capability',
      policies: { p: path('sys/audit', '"read", "sudo"') },
      line: 'GET sys/audit',
      granting: ['p'],
      rules: [{ policy: 'p', path: 'sys/audit' }],
    },
    {
      what: 'two rules for the two forms of a path',
      policies: { p: path('sys/policies/acl/P', '"read"'), q: path('sys/policies/acl/+', '"read"') },
      line: 'GET sys/policies/acl/P',
      granting: ['q', 'p'],
      rules: [
        { policy: 'q', path: 'sys/policies/acl/+' },
        { policy: 'p', path: 'sys/policies/acl/P' },
      ],
    },
    {
      what: 'no policy, if any valid token is enough',
      policies: { p: path('transit/*', update) },
      line: 'GET sys/internal/ui/mounts/transit',
      granting: [],
      rules: [],
    },
    {
      what: 'parameter rules',
      policies: { p: path('transit/encrypt/k', update, 'allowed_parameters = { plaintext = [] }') },
      granting: ['p'],
      rules: [{ policy: 'p', path: 'transit/encrypt/k' }],
    },
  ] satisfies { what: string; policies: object; line?: string; granting: string[]; rules: object[] }[])
    it(`name what grants a request: ${what}`, async () => {
      const token = await tokenWith(policies as Record<string, string>);
      const answer = await at.ask(line, { token, ...(line.startsWith('POST') && { body: { plaintext } }) });
      expect(answer.status, answer.text).to.equal(200);
      const { asked, answered } = devices.pair;
      for (const entry of [asked, answered])
        expect(entry.auth.policy_results).to.deep.equal({ allowed: true, granting_policies: granting.map(acl), rules });
      expect(answered).to.not.have.property('refused_by');
    });

  it('name the policy root, in both entries', async () => {
    await at.ask('GET transit/keys/k');
    const { asked, answered } = devices.pair;
    for (const { auth } of [asked, answered])
      expect(auth.policy_results).to.deep.equal({
        allowed: true,
        granting_policies: [acl('root')],
        rules: [{ policy: 'root', path: '*' }],
      });
  });

  const secret = 'hunter2-of-great-value';
  for (const {
    what,
    policies,
    line = 'POST transit/encrypt/k',
    body = { plaintext },
    headers = {},
    rules,
    constraint,
    given,
  } of [
    { what: 'no rule matches', policies: { p: path('other/*', update) }, rules: [], constraint: 'capabilities.update' },
    {
      what: 'it has no policy',
      policies: { nothing: '' },
      line: 'GET transit/keys/k',
      rules: [],
      constraint: 'capabilities.read',
    },
    {
      what: 'the rule lacks the capability',
      policies: { p: path('transit/keys/+', update), q: path('transit/keys/+', '"list"') },
      line: 'DELETE transit/keys/k',
      rules: ['p', 'q'].map((policy) => ({ policy, path: 'transit/keys/+' })),
      constraint: 'capabilities.delete',
    },
    {
      what: 'a rule denies, in one of several policies',
      policies: { p: path('transit/*', update), q: path('transit/*', '"deny"') },
      rules: [{ policy: 'q', path: 'transit/*' }],
      constraint: 'deny',
    },
    {
      what: 'it lacks sudo',
      policies: { p: path('sys/audit', '"read"') },
      line: 'GET sys/audit',
      rules: [{ policy: 'p', path: 'sys/audit' }],
      constraint: 'capabilities.sudo',
    },
    {
      what: 'a parameter is denied',
      policies: { p: path('transit/encrypt/k', update, `denied_parameters = { context = [] }`) },
      body: { plaintext, context: secret },
      rules: [{ policy: 'p', path: 'transit/encrypt/k' }],
      constraint: 'denied_parameters.context',
    },
    {
      what: 'every parameter is denied',
      policies: { p: path('transit/encrypt/k', update, `denied_parameters = { "*" = [] }`) },
      rules: [{ policy: 'p', path: 'transit/encrypt/k' }],
      constraint: 'denied_parameters.*',
    },
    {
      what: 'a value is not allowed',
      policies: { p: path('transit/encrypt/k', update, `allowed_parameters = { plaintext = ["AAAA"] }`) },
      rules: [{ policy: 'p', path: 'transit/encrypt/k' }],
      constraint: 'allowed_parameters.plaintext',
    },
    {
      what: 'a declared parameter is not allowed',
      policies: { p: path('transit/encrypt/k', update, 'allowed_parameters = { plaintext = [] }') },
      body: { plaintext, key_version: 1 },
      rules: [{ policy: 'p', path: 'transit/encrypt/k' }],
      constraint: 'allowed_parameters.key_version',
    },
    {
      what: 'an undeclared parameter is not allowed: its name may be a secret',
      policies: { p: path('transit/encrypt/k', update, 'allowed_parameters = { plaintext = [] }') },
      body: { plaintext, [secret]: 1 },
      rules: [{ policy: 'p', path: 'transit/encrypt/k' }],
      constraint: 'allowed_parameters',
      given: [secret],
    },
    {
      what: 'a required parameter is missing',
      policies: { p: path('transit/encrypt/k', update, 'required_parameters = ["associated_data"]') },
      rules: [{ policy: 'p', path: 'transit/encrypt/k' }],
      constraint: 'required_parameters.associated_data',
    },
    {
      what: 'an item has a denied parameter',
      policies: { p: path('transit/encrypt/k', update, 'denied_parameters = { context = [] }') },
      body: { batch_input: [{ plaintext }, { plaintext, context: secret }] },
      rules: [{ policy: 'p', path: 'transit/encrypt/k' }],
      constraint: 'denied_parameters.context',
    },
    {
      what: 'the response is not wrapped for long enough',
      policies: { p: path('transit/encrypt/k', update, 'min_wrapping_ttl = "1m"') },
      rules: [{ policy: 'p', path: 'transit/encrypt/k' }],
      constraint: 'min_wrapping_ttl',
    },
    {
      what: 'the response is wrapped for too long',
      policies: { p: path('transit/encrypt/k', update, 'max_wrapping_ttl = "1m"') },
      headers: { 'X-Service-Wrap-TTL': '120' },
      rules: [{ policy: 'p', path: 'transit/encrypt/k' }],
      constraint: 'max_wrapping_ttl',
    },
    {
      what: 'a page is too large',
      policies: { p: path('transit/keys', '"list"', 'pagination_limit = 5') },
      line: 'GET transit/keys?list=true&limit=6',
      rules: [{ policy: 'p', path: 'transit/keys' }],
      constraint: 'pagination_limit',
    },
    {
      what: 'a name is denied in capitals',
      policies: { p: `${path('sys/policies/acl/*', '"read"')} ${path('sys/policies/acl/SECRET', '"deny"')}` },
      line: 'GET sys/policies/acl/secret',
      rules: [{ policy: 'p', path: 'sys/policies/acl/secret' }],
      constraint: 'deny',
    },
    {
      what: 'a value from the body is denied as a part of the path',
      policies: { p: `${path('transit/hash', update)} ${path('transit/hash/sha2-512', '"deny"')}` },
      line: 'POST transit/hash',
      body: { input: plaintext, algorithm: 'sha2-512' },
      rules: [{ policy: 'p', path: 'transit/hash/sha2-512' }],
      constraint: 'deny',
    },
    {
      what: 'a key exists that the caller may only create',
      policies: { p: path('transit/encrypt/k', '"create"') },
      rules: [{ policy: 'p', path: 'transit/encrypt/k' }],
      constraint: 'capabilities.update',
    },
  ] satisfies {
    what: string;
    policies: object;
    line?: string;
    body?: object;
    headers?: Record<string, string>;
    rules: object[];
    constraint: string;
    given?: string[];
  }[])
    it(`name what refuses a request, and the caller gets the same answer as ever: ${what}`, async () => {
      const token = await tokenWith(policies as Record<string, string>);
      const hashes = await Promise.all(
        (given ?? []).map(async (input) => (await at.ask('POST sys/audit-hash/main', { body: { input } })).body.data.hash),
      );
      const { status, text } = await at.ask(line, { token, headers, ...(line.startsWith('POST') && { body }) });
      expect(`${status} ${text}`).to.equal(denied);
      const { answered } = devices.pair;
      expect(answered.auth.policy_results).to.deep.equal({ allowed: false, granting_policies: [], rules });
      expect(answered.refused_by).to.deep.equal({ constraint, ...(given && { given: hashes }) });
      expect(devices.lines.slice(-2).join('\n')).to.not.include(secret).and.not.include(plaintext);
    });

  it('are absent where no policy decides: without a valid token, and at a login', async () => {
    await at.ask('GET transit/keys/k', { token: 's.nothing' });
    expect(devices.pair.answered.auth).to.deep.equal({});
    await at.ask('POST sys/auth/userpass', { body: { type: 'userpass' } });
    await at.ask('POST auth/userpass/login/ann', { token: null, body: { password: 'x' } });
    expect(devices.pair.answered.auth).to.deep.equal({});
  });

  it('are true of a refusal that is no matter of policies', async () => {
    const token = await tokenWith({ p: path('transit/keys/none', '"read"') });
    expect((await at.ask('GET transit/keys/none', { token })).status).to.equal(404);
    const { answered } = devices.pair;
    expect(answered.auth.policy_results.allowed).to.equal(true);
    expect(answered).to.not.have.property('refused_by');
  });

  it('are those of the decision: the response entry has a denial that was written while the request entry was', async () => {
    const token = await tokenWith({ p: path('transit/encrypt/k', update) });
    let isChanging = true;
    devices.before = async (type) => {
      if (type !== 'request' || !isChanging) return;
      isChanging = false;
      await at.services.policies.write('p', path('transit/encrypt/k', '"deny"'));
    };
    const { status, text } = await at.ask('POST transit/encrypt/k', { token, body: { plaintext } });
    expect(`${status} ${text}`).to.equal(denied);
    const { asked, answered } = devices.pair;
    expect(asked.auth.policy_results.allowed).to.equal(true);
    expect(answered.auth.policy_results).to.deep.include({ allowed: false, granting_policies: [] });
    expect(answered.refused_by).to.deep.equal({ constraint: 'deny' });
  });

  it('of a wrapped response and of a token with one use are those of any other', async () => {
    const token = await tokenWith({ p: path('transit/encrypt/k', update) }, { num_uses: 1 });
    const headers = { 'X-Service-Wrap-TTL': '60' };
    const { body } = await at.ask('POST transit/encrypt/k', { token, headers, body: { plaintext } });
    expect(body.wrap_info.ttl).to.equal(60);
    expect(devices.pair.answered.auth.policy_results.granting_policies).to.deep.equal([acl('p')]);
    await at.ask('POST transit/encrypt/k', { token, body: { plaintext } });
    expect(devices.pair.answered.refused_by).to.deep.equal({ constraint: 'client_token' });
  });
});
