// Guesses of role ids: no answer reveals which role ids exist. packages/access/test/auth/login.test.ts counts the work that each guess takes.
import { expect } from 'chai';
import { processMs, Workbench } from '../process/live-server.ts';

describe('a refused login by role id', () => {
  const bench = new Workbench();
  after(() => bench.clean());

  it('gives the same answer for a role that is there and for one that is not', async () => {
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
