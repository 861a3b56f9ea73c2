// @live
// A refused login does not reveal whether a role id exists. packages/api/test/auth/refused-login.test.ts counts the work of both cases.
import { expect } from 'chai';
import { processMs, Workbench } from '../process/live-server.ts';

describe('a refused login by role id', () => {
  const bench = new Workbench();
  after(() => bench.clean());

  it('has the same answer for an existing role and for an unknown one', async () => {
    const server = await bench.launch({ dataDir: bench.folder() }).ready();
    expect((await server.call('POST', 'sys/auth/approle', { type: 'approle' })).status).to.equal(204);
    expect((await server.call('POST', 'auth/approle/role/web', {})).status).to.equal(204);
    const known = (await server.call('GET', 'auth/approle/role/web/role-id')).string('data.role_id');
    const answers = [];
    for (const role_id of [known, '00000000-0000-4000-8000-000000000000']) {
      const { status, text } = await server.call('POST', 'auth/approle/login', { role_id, secret_id: 'wrong' }, null);
      answers.push([status, text]);
    }
    expect(answers[0]).to.deep.equal([400, answers[1]?.[1]]);
  }).timeout(processMs);
});
