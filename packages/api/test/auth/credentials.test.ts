import { expect } from 'chai';
import { allRoutes } from '../../src/routes.ts';
import { type Served, served } from '../served.ts';
import { TestMetrics } from '../test-metrics.ts';

/** Programs read credentials from files, which often end with a line break. Headers are trimmed; so are bodies. */
describe('a credential in a body', () => {
  let at: Served;
  beforeEach(async () => {
    at = await served();
  });
  afterEach(() => at.close());

  it('is declared as such wherever a field is named like one', () => {
    const named = /^(?:token|accessor|role_id|secret_id|secret_id_accessor|jwt|dr_operation_token|nonce)$/;
    const declared = allRoutes(new TestMetrics()).flatMap(({ path, operations }) =>
      Object.values(operations).flatMap(({ takes, byType }) =>
        [{ takes }, ...Object.values(byType ?? {})].flatMap(({ takes }) =>
          Object.entries(takes ?? {}).flatMap(([name, { kind, long, trimmed }]) =>
            named.test(name) && kind === 'string' && long !== true ? [{ path, name, trimmed }] : [],
          ),
        ),
      ),
    );
    expect(declared).to.have.length.above(20);
    expect(declared.filter(({ trimmed }) => trimmed !== true)).to.deep.equal([]);
  });

  it('may have white space around it', async () => {
    const made = async (): Promise<{ client_token: string; accessor: string }> =>
      (await at.ask('POST auth/token/create', { body: { policies: ['default'] } })).body.auth;
    const [one, other] = [await made(), await made()];
    expect((await at.ask('POST auth/token/lookup', { body: { token: ` ${one.client_token}\r\n` } })).status).to.equal(200);
    expect((await at.ask('POST auth/token/revoke', { body: { token: `${one.client_token}\n` } })).status).to.equal(204);
    expect((await at.ask('POST auth/token/revoke-accessor', { body: { accessor: `${other.accessor}\n` } })).status).to.equal(204);
    for (const { client_token: token } of [one, other])
      expect((await at.ask('GET auth/token/lookup-self', { token })).status, 'revoked').to.equal(403);

    await at.ask('POST sys/auth/approle', { body: { type: 'approle' } });
    await at.ask('POST auth/approle/role/r', { body: {} });
    const { role_id } = (await at.ask('GET auth/approle/role/r/role-id')).body.data;
    const { secret_id } = (await at.ask('POST auth/approle/role/r/secret-id', { body: {} })).body.data;
    const login = { role_id: `${role_id}\n`, secret_id: `${secret_id}\n` };
    expect((await at.ask('POST auth/approle/login', { token: null, body: login })).status).to.equal(200);
  });

  it('that names no token is not revoked in silence', async () => {
    for (const [path, body] of [
      ['auth/token/revoke', { token: 's.none' }],
      ['auth/token/revoke-accessor', { accessor: 'none' }],
    ] as const) {
      const answer = await at.ask(`POST ${path}`, { body });
      expect(answer.status, path).to.equal(200);
      expect(answer.body.warnings.join(), path).to.match(/^No (?:such token|token found)/);
    }
  });

  it('is not a password, which may end with white space', async () => {
    await at.ask('POST sys/auth/userpass', { body: { type: 'userpass' } });
    await at.ask('POST auth/userpass/users/u', { body: { password: 'x ' } });
    const login = async (password: string): Promise<number> =>
      (await at.ask('POST auth/userpass/login/u', { token: null, body: { password } })).status;
    expect([await login('x'), await login('x ')]).to.deep.equal([400, 200]);
  });
});
