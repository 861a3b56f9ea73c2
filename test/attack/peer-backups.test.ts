// @live
// Vault and OpenBao use the same numbers for different key types. A restored key has its original type, or is refused.
import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { base64, type LiveServer, processMs, Workbench } from '../process/live-server.ts';

const secret = Buffer.alloc(32, 1);
const other = Buffer.alloc(32, 2);
const input = base64('a message');

/** Returns a backup with one version. @param members - of the policy, in addition to the usual ones */
function backupOf(type: number, key: Buffer, hmacKey: Buffer, members: object = {}): string {
  const entry = { key: key.toString('base64'), hmac_key: hmacKey.toString('base64'), time: '2025-01-02T03:04:05Z' };
  const policy = { name: 'x', type, latest_version: 1, min_decryption_version: 1, keys: { '1': entry }, ...members };
  return Buffer.from(JSON.stringify({ policy, archived_keys: null })).toString('base64');
}

describe('key backups of Vault and OpenBao', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  before(async () => {
    server = await bench.start({ dataDir: bench.folder() });
  });
  after(() => bench.clean());

  for (const [peer, type] of [
    ['OpenBao', 10],
    ['Vault', 11],
  ] as const)
    it(`restore an HMAC key, whose type number in ${peer} is ${type}, as an HMAC key`, async () => {
      const path = `transit/restore/hmac-${type}`;
      expect((await server.call('POST', path, { backup: backupOf(type, secret, secret, { key_size: 32 }) })).status).to.equal(
        204,
      );
      expect((await server.call('GET', `transit/keys/hmac-${type}`)).at('data.type')).to.equal('hmac');
      const made = (await server.call('POST', `transit/hmac/hmac-${type}`, { input })).string('data.hmac');
      expect(made).to.match(/:v1:/);
      expect(made.split(':')[2]).to.equal(createHmac('sha256', secret).update('a message').digest('base64'));
    });

  for (const [why, backup, says] of [
    ['the xchacha20-poly1305 of OpenBao', backupOf(11, secret, other), /xchacha20-poly1305/],
    ['the number of HMAC keys with the content of a cipher key', backupOf(10, secret, other), /./],
    ['an ambiguous type', backupOf(11, secret, Buffer.alloc(0)), /./],
    ['a later type number of Vault in a backup of OpenBao', backupOf(13, secret, other, { soft_deleted: false }), /./],
  ] as const)
    it(`are refused, and create no key: ${why}`, async () => {
      const refused = await server.call('POST', 'transit/restore', { backup });
      expect(refused.status, refused.text).to.equal(400);
      expect(refused.text).to.match(says);
      expect((await server.call('GET', 'transit/keys/x')).status).to.equal(404);
    });
});
