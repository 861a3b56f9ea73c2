import { expect } from 'chai';
import { type Served, served } from '../served.ts';

describe('the endpoints of auth methods', () => {
  let server: Served;
  beforeEach(async () => {
    server = await served();
  });
  afterEach(() => server.close());

  const enable = (path: string, config: object = {}) =>
    server.ask(`POST sys/auth/${path}`, { body: { type: 'userpass', config } });
  const places = ['sys/auth/people/tune', 'sys/mounts/auth/people/tune'];

  it('accept the settings that command-line clients send, and name those that have no effect', async () => {
    const sent = { options: null, default_lease_ttl: '', max_lease_ttl: '', force_no_cache: false, token_type: '' };
    expect((await enable('people', sent)).status).to.equal(204);
    const inForce = { token_type: 'default-service', listing_visibility: 'hidden' };
    expect((await enable('more', inForce)).status, 'settings as they are').to.equal(204);
    const { status, body } = await enable('others', { token_type: 'batch', misspelled: 1 });
    expect(status).to.equal(200);
    expect(body.warnings).to.deep.equal([
      'Endpoint ignored these unrecognized parameters: [misspelled]',
      'These parameters have no effect here: [token_type]',
    ]);
  });

  it('show a method as the list does, in data and at the top level', async () => {
    await enable('people');
    const { body } = await server.ask('GET sys/auth/people');
    expect(body.data).to.deep.equal((await server.ask('GET sys/auth')).body.data['people/']);
    expect(body).to.deep.include(body.data);
  });

  it('tune a method also below sys/mounts/, where an empty TTL keeps its value and "system" resets it', async () => {
    await enable('people');
    const before = (await server.ask('GET sys/auth/people/tune')).body.data;
    for (const place of places) {
      const tune = async (settings: object) => (await server.ask(`POST ${place}`, { body: settings })).status;
      const tuned = async () => (await server.ask(`GET ${place}`)).body.data;
      expect(await tune({ default_lease_ttl: '30m', max_lease_ttl: '1h' })).to.equal(204);
      const asClientsSend = { options: null, default_lease_ttl: '', max_lease_ttl: '', force_no_cache: false, description: 'd' };
      expect(await tune(asClientsSend)).to.equal(204);
      expect(await tuned()).to.include({ default_lease_ttl: 1800, max_lease_ttl: 3600, description: 'd' });
      expect(await tune({ default_lease_ttl: 'system', max_lease_ttl: 'system', description: '' })).to.equal(204);
      expect(await tuned()).to.deep.equal(before);
    }
    expect((await server.ask('GET sys/mounts/auth/token/tune')).body.data).to.include({ description: 'token based credentials' });
    const unknown = await server.ask('GET sys/mounts/auth/nobody/tune');
    expect([unknown.status, unknown.body.errors]).to.deep.equal([400, ['No auth engine at nobody/']]);
  });

  it('require sudo on both paths, and a denial of one of them applies to the other', async () => {
    await enable('people');
    const allow = (path: string, ...more: string[]) =>
      `path "${path}" { capabilities = [${['"read", "update"', ...more].join()}] }\n`;
    const statuses = async (policy: string) => {
      await server.ask('POST sys/policies/acl/p', { body: { policy } });
      const made = await server.ask('POST auth/token/create', { body: { policies: ['p'], no_default_policy: true } });
      const token = made.body.auth.client_token;
      return Promise.all(
        places.flatMap((place) => ['GET', 'POST'].map(async (verb) => (await server.ask(`${verb} ${place}`, { token })).status)),
      );
    };
    expect(await statuses(allow('sys/*'))).to.deep.equal([403, 403, 403, 403]);
    expect(await statuses(allow('sys/*', '"sudo"'))).to.deep.equal([200, 204, 200, 204]);
    for (const place of places)
      expect(await statuses(`${allow('sys/*', '"sudo"')}path "${place}" { capabilities = ["deny"] }`)).to.deep.equal([
        403, 403, 403, 403,
      ]);
  });

  it('is read below sys/mounts/ too, as clients in Go and Terraform do, without sudo', async () => {
    await server.ask('POST sys/auth/people', { body: { type: 'userpass', description: 'staff' } });
    const tokenWith = async (rules: string): Promise<string> => {
      await server.ask('POST sys/policies/acl/p', { body: { policy: rules } });
      return (await server.ask('POST auth/token/create', { body: { policies: ['p'] } })).body.auth.client_token;
    };
    const path = 'GET sys/mounts/auth/people';
    const own = (await server.ask('GET sys/auth/people')).body.data;
    expect((await server.ask(path)).body.data)
      .to.deep.equal(own)
      .and.to.include({ type: 'userpass', description: 'staff' });
    expect((await server.ask('GET sys/mounts/auth/nobody')).body.errors).to.deep.equal(['No auth engine at nobody/']);
    const rule = 'path "sys/mounts/auth/*" { capabilities = ["read"] }';
    const reader = await tokenWith(rule);
    expect((await server.ask(path, { token: reader })).status).to.equal(200);
    const denied = await tokenWith(`${rule} path "sys/auth/people" { capabilities = ["deny"] }`);
    expect((await server.ask(path, { token: denied })).status, 'denied under the other path').to.equal(403);
  });
});
