import { expect } from 'chai';
import { type Served, served } from '../served.ts';

const plaintext = 'AAAA';
const refused = { errors: ['refusing to use soft-deleted key'] };

describe('keys and versions out of use', () => {
  let at: Served;
  beforeEach(async () => {
    at = await served();
    for (const line of ['POST transit/keys/k', 'POST transit/keys/k/rotate']) await at.ask(line, { body: {} });
  });
  afterEach(() => at.close());

  it('soft-delete answers with the key, and with a warning if it was soft-deleted already', async () => {
    expect((await at.ask('GET transit/keys/k')).body.data).to.include({ soft_deleted: false });
    const first = await at.ask('DELETE transit/keys/k/soft-delete');
    expect(first.status).to.equal(200);
    expect(first.body.data).to.include({ name: 'k', soft_deleted: true, deletion_allowed: false });
    expect(first.body.warnings).to.equal(null);
    expect((await at.ask('DELETE transit/keys/k/soft-delete')).body).to.deep.include({
      data: first.body.data,
      warnings: ['key was already marked as soft deleted'],
    });
    const read = await at.ask('GET transit/keys/k');
    expect(read.body.data).to.deep.equal(first.body.data);
  });

  for (const verb of ['POST', 'PUT'] as const)
    it(`soft-delete-restore by ${verb} answers with the key, and with a warning if it was not soft-deleted`, async () => {
      await at.ask('DELETE transit/keys/k/soft-delete');
      const answer = await at.ask(`${verb} transit/keys/k/soft-delete-restore`);
      expect(answer.status).to.equal(200);
      expect(answer.body.data).to.include({ name: 'k', soft_deleted: false });
      expect(answer.body.warnings).to.equal(null);
      expect((await at.ask(`${verb} transit/keys/k/soft-delete-restore`)).body.warnings).to.deep.equal([
        'key was already restored',
      ]);
    });

  it('a soft-deleted key is refused with 400, single and in a batch, and is still listed', async () => {
    await at.ask('DELETE transit/keys/k/soft-delete');
    for (const [line, body] of [
      ['POST transit/encrypt/k', { plaintext }],
      ['POST transit/encrypt/k', { batch_input: [{ plaintext }], partial_failure_response_code: 200 }],
      ['POST transit/hmac/k', { input: plaintext }],
      ['POST transit/datakey/plaintext/k', {}],
      ['POST transit/keys/k/rotate', {}],
      ['GET transit/export/hmac-key/k', undefined],
    ] as const) {
      const answer = await at.ask(line, { body });
      expect({ status: answer.status, body: answer.body }, line).to.deep.equal({ status: 400, body: refused });
    }
    expect((await at.ask('GET transit/keys?list=true')).body.data.keys).to.deep.equal(['k']);
  });

  it('a key that does not exist cannot be put out of use', async () => {
    for (const line of [
      'DELETE transit/keys/none/soft-delete',
      'POST transit/keys/none/soft-delete-restore',
      'POST transit/keys/none/versions/1/disable',
      'POST transit/keys/none/versions/1/enable',
    ])
      expect(await at.ask(line), line).to.deep.include({
        status: 400,
        body: { errors: ['no existing key named none could be found'] },
      });
  });

  it('a disabled version is shown with its reason and time, and enabled again', async () => {
    const disabled = await at.ask('POST transit/keys/k/versions/1/disable', { body: { reason: 'leaked' } });
    expect(disabled.status).to.equal(200);
    const { 1: version } = disabled.body.data.disabled_versions;
    expect(version.reason).to.equal('leaked');
    expect(Math.abs(Date.parse(version.time) - Date.now())).to.be.below(60_000);
    expect((await at.ask('POST transit/encrypt/k', { body: { plaintext, key_version: 1 } })).body).to.deep.equal({
      errors: ['key version 1 is disabled'],
    });
    expect((await at.ask('POST transit/encrypt/k', { body: { plaintext } })).status).to.equal(200);
    const enabled = await at.ask('POST transit/keys/k/versions/1/enable');
    expect(enabled.body.data).not.to.have.property('disabled_versions');
    expect((await at.ask('POST transit/encrypt/k', { body: { plaintext, key_version: 1 } })).status).to.equal(200);
  });

  it('the latest version cannot be disabled, and a version has one spelling', async () => {
    expect(await at.ask('POST transit/keys/k/versions/2/disable')).to.deep.include({
      status: 400,
      body: { errors: ['version 2 is the latest and cannot be disabled: rotate the key first'] },
    });
    for (const version of ['01', 'v1', '0x1', '1.0', '0', 'latest', '-1', '%31%20', '12345678901'])
      expect((await at.ask(`POST transit/keys/k/versions/${version}/disable`)).status, version).to.equal(404);
    const long = await at.ask('POST transit/keys/k/versions/1/disable', { body: { reason: 'x'.repeat(129) } });
    expect(long.status).to.equal(400);
    expect((await at.ask('GET transit/keys/k')).body.data).not.to.have.property('disabled_versions');
  });

  it('what will be deleted later is deleted only for a caller who may delete it now', async () => {
    await at.ask('POST transit/keys/k/config', { body: { deletion_allowed: true } });
    const granted = (path: string, ...capabilities: string[]) =>
      `path "${path}" { capabilities = ${JSON.stringify(capabilities)} }`;
    const changes = granted('transit/keys/*', 'read', 'create', 'update');
    const asked = async (path: string, body: object, ...rules: string[]): Promise<number> => {
      await at.ask('POST sys/policies/acl/keys', { body: { policy: rules.join('\n') } });
      const { body: made } = await at.ask('POST auth/token/create', { body: { policies: ['keys'] } });
      return (await at.ask(`POST transit/keys/k/${path}`, { token: made.auth.client_token, body })).status;
    };
    const trims = { keep_decryption_versions: 1, trim_after: '1h' };
    const onlyConfig = granted('transit/keys/k/config', 'update');
    expect(await asked('config', trims, onlyConfig)).to.equal(403);
    expect(await asked('config', trims, changes, granted('transit/keys/k/trim', 'deny'))).to.equal(403);
    expect((await at.ask('GET transit/keys/k')).body.data).to.include({ keep_decryption_versions: 0, trim_after: 0 });
    expect(await asked('config', { trim_after: 0 }, onlyConfig)).to.equal(200);
    expect(await asked('config', trims, changes)).to.equal(200);
    expect(
      (await at.ask('POST transit/keys/k/config', { body: { keep_decryption_versions: 0, trim_after: '2h' } })).status,
    ).to.equal(200);
    await at.ask('POST transit/keys/k/rotate');
    for (const [body, status] of [
      [{ min_decryption_version: 3, min_encryption_version: 3 }, 403], // from 2: version 2 would be deleted
      [{ keep_decryption_versions: 2 }, 403],
      [{ trim_after: '1h' }, 403],
      [{ trim_after: '2h', deletion_allowed: true }, 200],
      [{ trim_after: '3h' }, 200],
      [{ min_decryption_version: 1 }, 200],
    ] as const)
      expect(await asked('config', body, onlyConfig), JSON.stringify(body)).to.equal(status);
    await at.ask('POST transit/keys/k/config', { body: { trim_after: 0 } });
    expect(await asked('config', { min_decryption_version: 2 }, onlyConfig)).to.equal(200);

    const deletion = { after: '7d' };
    expect(await asked('schedule-deletion', deletion, changes)).to.equal(403);
    expect(await asked('schedule-deletion', deletion, changes, granted('transit/keys/k', 'deny'))).to.equal(403);
    expect((await at.ask('GET transit/keys/k')).body.data).to.include({ soft_deleted: false });
    expect(await asked('schedule-deletion', deletion, changes, granted('transit/keys/k', 'delete'))).to.equal(200);
  });

  it('a deletion is scheduled in days, shown with its due time, and cancelled by a restore', async () => {
    const schedule = (after: unknown) => at.ask('POST transit/keys/k/schedule-deletion', { body: { after } });
    expect((await schedule('7d')).body.errors[0]).to.match(/deletion is not allowed for this key/);
    await at.ask('POST transit/keys/k/config', { body: { deletion_allowed: true } });
    for (const after of [undefined, '6d', '91d', 0, 'soon']) expect((await schedule(after)).status, `${after}`).to.equal(400);
    const { status, body } = await schedule('7d');
    expect(status).to.equal(200);
    expect(body.data).to.include({ soft_deleted: true });
    const untilDueMs = Date.parse(body.data.scheduled_deletion.due_time) - Date.now();
    expect(Math.abs(untilDueMs - 7 * 86_400_000)).to.be.below(60_000);
    expect((await at.ask('POST transit/encrypt/k', { body: { plaintext } })).body).to.deep.equal(refused);
    const { data } = (await at.ask('POST transit/keys/k/soft-delete-restore')).body;
    expect(data).to.include({ soft_deleted: false }).and.not.to.have.property('scheduled_deletion');
  });

  it('each change needs its own right', async () => {
    const policy = `
      path "transit/keys/k/soft-delete" { capabilities = ["update"] }
      path "transit/keys/k/soft-delete-restore" { capabilities = ["delete"] }
      path "transit/keys/k/versions/1/disable" { capabilities = ["create"] }`;
    await at.ask('POST sys/policies/acl/p', { body: { policy } });
    const { auth } = (await at.ask('POST auth/token/create', { body: { policies: ['p'] } })).body;
    for (const line of [
      'DELETE transit/keys/k/soft-delete',
      'POST transit/keys/k/soft-delete-restore',
      'POST transit/keys/k/versions/1/disable',
      'POST transit/keys/k/versions/1/enable',
      'POST transit/keys/k/schedule-deletion',
    ])
      expect((await at.ask(line, { token: auth.client_token })).status, line).to.equal(403);
  });
});
