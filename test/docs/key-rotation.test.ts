import { expect } from 'chai';
import { base64, processMs, Workbench } from '../process/live-server.ts';
import { runBlocks, shellBlocks } from './page.ts';

describe('docs/key-rotation.md', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  after(() => bench.clean());

  it('has commands that rotate a key, renew its ciphertexts and retire its old version', async () => {
    const server = await bench.start({ dataDir: bench.folder() });
    await server.call('POST', 'transit/keys/orders');
    const encrypt = async (): Promise<string> =>
      (await server.call('POST', 'transit/encrypt/orders', { plaintext: base64('x') })).string('data.ciphertext');
    const rows = [
      { id: 1, ciphertext: await encrypt() },
      { id: 2, ciphertext: await encrypt() },
    ];
    const ran = await runBlocks(shellBlocks('docs/key-rotation.md'), {
      replace: {},
      files: { 'rows.jsonl': `${rows.map((row) => JSON.stringify(row)).join('\n')}\n` },
      env: { TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken },
    });
    expect(ran.code, ran.stdout + ran.stderr).to.equal(0);
    expect(ran.stdout).to.match(/^rewrapped +2$/m);
    const key = await server.call('GET', 'transit/keys/orders');
    expect(key.at('data')).to.include({ latest_version: 2, min_available_version: 2, min_decryption_version: 2 });
    expect((await server.call('POST', 'transit/decrypt/orders', { ciphertext: rows[0]?.ciphertext })).status).to.equal(400);
  });
});
