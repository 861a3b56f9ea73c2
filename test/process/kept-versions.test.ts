// @live
// This version opens data directories of earlier versions, and everything in them still works.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Kept } from './kept/kept.ts';
import { type LiveServer, processMs, Workbench } from './live-server.ts';

const folder = join(import.meta.dirname, 'kept');
const versions = readdirSync(folder).flatMap((name) => /^(.*)\.tar\.gz$/.exec(name)?.[1] ?? []);

describe('a data directory of an earlier version', () => {
  const bench = new Workbench();
  after(() => bench.clean());

  it('exists for at least one version', () => {
    expect(versions).to.include('0.1.0');
  });

  for (const version of versions)
    it(`of ${version} opens: keys, signatures, logins and tokens are valid, also after another restart`, async function () {
      this.timeout(processMs);
      const dataDir = unpackedDirectory(bench, version);
      const kept = contentOf(version);
      for (let start = 0; start < 2; start++) {
        const server = await bench.start({ dataDir });
        await stillHolds(server, kept);
        expect((await server.stop()).code).to.equal(0);
      }
    });
});

describe('a backup of an earlier version', () => {
  const bench = new Workbench();
  after(() => bench.clean());

  for (const version of versions)
    it(`of ${version} is restored: keys, signatures, logins and tokens are valid`, async function () {
      this.timeout(processMs);
      const server = await bench.start({ dataDir: unpackedDirectory(bench, version) });
      const kept = contentOf(version);
      const setting = await server.call('POST', 'transit/keys/aes256-gcm96/config', { deletion_allowed: true }, kept.rootToken);
      expect(setting.status, setting.text).to.be.oneOf([200, 204]);
      await server.call('DELETE', 'transit/keys/aes256-gcm96', undefined, kept.rootToken);
      expect((await server.call('GET', 'transit/keys/aes256-gcm96', undefined, kept.rootToken)).status).to.equal(404);
      const restoredMs = Date.now();
      const restored = await fetch(`${server.url}/v1/sys/storage/raft/snapshot`, {
        method: 'POST',
        headers: { 'X-Service-Token': kept.rootToken },
        body: readFileSync(join(import.meta.dirname, '../upgrade/fixtures', `${version}.backup.snap`)),
      });
      expect(restored.status, await restored.text()).to.be.oneOf([200, 204]);
      await stillHolds(server, kept, { countsSinceMs: restoredMs });
      expect((await server.stop()).code).to.equal(0);
    });
});

function unpackedDirectory(bench: Workbench, version: string): string {
  const dataDir = bench.folder();
  const unpacked = spawnSync('tar', ['-C', dataDir, '--strip-components=1', '-xzf', join(folder, `${version}.tar.gz`)]);
  expect(unpacked.status, String(unpacked.stderr)).to.equal(0);
  return dataDir;
}

const contentOf = (version: string): Kept => JSON.parse(readFileSync(join(folder, `${version}.json`), 'utf8')) as Kept;

/** @param countsSinceMs - counting has begun again since then, in Unix milliseconds, because uses after the backup may be missing */
async function stillHolds(
  server: LiveServer,
  kept: Kept,
  { countsSinceMs }: { readonly countsSinceMs?: number } = {},
): Promise<void> {
  const { plaintext, context, rootToken } = kept;
  const call = (path: string, body: object, token = rootToken) => server.call('POST', path, body, token);
  for (const { name, derived, text: ciphertext } of kept.ciphertexts) {
    const sent = { ciphertext, ...(derived && { context }) };
    expect((await call(`transit/decrypt/${name}`, sent)).at('data.plaintext'), name).to.equal(plaintext);
    expect((await call(`transit/rewrap/${name}`, sent)).at('data.key_version'), name).to.equal(2);
  }
  for (const { name, text: hmac } of kept.hmacs)
    expect((await call(`transit/verify/${name}`, { input: plaintext, hmac })).at('data.valid'), name).to.equal(true);
  for (const { name, text: signature } of kept.signatures)
    expect((await call(`transit/verify/${name}`, { input: plaintext, signature })).at('data.valid'), name).to.equal(true);
  for (const { path, data } of kept.reads ?? []) {
    const read = await server.call('GET', path, undefined, rootToken);
    const { counting_since: counted, ...others } = data;
    expect(read.at('data'), `${path}: ${read.text}`).to.deep.include(countsSinceMs === undefined ? data : others);
    if (counted !== undefined && countsSinceMs !== undefined)
      expect(Date.parse(read.string('data.counting_since')), path).to.be.at.least(countsSinceMs);
  }
  const tokens = [kept.policyToken ?? ''];
  for (const { path, body } of kept.logins) tokens.push((await call(path, body)).string('auth.client_token'));
  for (const token of tokens) {
    expect((await call('transit/encrypt/aes256-gcm96', { plaintext }, token)).status).to.equal(200);
    expect((await call('transit/decrypt/aes256-gcm96', { ciphertext: kept.ciphertexts[0]?.text }, token)).status).to.equal(403);
  }
  expect((await call('second/encrypt/aes256-gcm96', { plaintext })).status).to.equal(200);
}
