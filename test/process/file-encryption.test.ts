// @live
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { runFileEncryption } from './file-run.ts';
import { type LiveServer, processMs, Workbench } from './live-server.ts';
import { expectCode, run } from './transitd-command.ts';

const mebibyte = 2 ** 20;
/** Memory for buffers, compiled code, and garbage that is not collected yet. */
const slackMiB = 64;

describe('the encryption of large files', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  let env: Record<string, string>;
  before(async () => {
    server = await bench.start({ dataDir: bench.folder() });
    env = { HOME: bench.folder(), TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken };
    await server.call('POST', 'transit/keys/files');
  });
  after(() => bench.clean());

  it('continues after a kill, restores every byte, and needs no more memory for a larger file', async () => {
    const small = await runFileEncryption(48 * mebibyte, bench.folder(), env);
    const large = await runFileEncryption(160 * mebibyte, bench.folder(), env);
    for (const { hashes } of [small, large]) expect(hashes[0]).to.equal(hashes[1]);
    expect(large.killedAtBytes).to.be.within(large.bytes / 3, large.bytes - 1);
    for (const direction of [0, 1] as const)
      expect(large.peakMiB[direction] - small.peakMiB[direction], JSON.stringify({ small, large })).to.be.below(slackMiB);
  });

  it('decrypts with the named key only, also after a rotation, and with the context of a derived key', async () => {
    const folder = bench.folder();
    const [plain, sealed, opened] = ['p', 's', 'o'].map((name) => join(folder, name)) as [string, string, string];
    writeFileSync(plain, 'the content');
    await server.call('POST', 'transit/keys/perctx', { derived: true });
    await server.call('POST', 'transit/keys/other');
    expectCode(await run(['key', 'encrypt-file', 'perctx', plain, sealed, '--context=tenant 7'], { env }), 0);
    await server.call('POST', 'transit/keys/perctx/rotate');
    expectCode(await run(['key', 'decrypt-file', 'other', sealed, opened], { env }), 1, 'another key');
    const wrong = expectCode(await run(['key', 'decrypt-file', 'perctx', sealed, opened, '--context=tenant 8'], { env }), 1);
    expect(wrong.stderr).to.match(/does not open the data key/);
    expectCode(await run(['key', 'decrypt-file', 'perctx', sealed, opened, '--context=tenant 7'], { env }), 0);
    expect(readFileSync(opened, 'utf8')).to.equal('the content');
    expect(readFileSync(sealed, 'utf8')).to.match(/^\{"format":"transitd-file-1","key":"perctx",.*\}\nsvc:v1:/);
    expectCode(await run(['key', 'encrypt-file', 'files', '-', `${sealed}2`], { env }), 1, 'standard input cannot be continued');
  });
});
