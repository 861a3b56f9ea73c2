// @live
import { expect } from 'chai';
import { until } from '../cluster/harness/until.ts';
import { base64, processMs, Workbench } from '../process/live-server.ts';
import { runBlocks, shellBlocks } from './page.ts';

const blocks = shellBlocks('docs/api.md', 'Rotate a key and renew its ciphertexts');

describe('the rotation of a key in docs/api.md', function () {
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
    const ran = await runBlocks(blocks, {
      replace: { '--unless-used-within 30d': '--unless-used-within 0' }, // the test cannot wait so long
      // Each program writes JSON with other spaces.
      files: { 'rows.jsonl': `${JSON.stringify(rows[0])}\n{ "id": 2, "ciphertext": "${rows[1]?.ciphertext}" }\n` },
      env: { TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken },
    });
    expect(ran.code, ran.stdout + ran.stderr).to.equal(0);
    expect(ran.stdout)
      .to.match(/^rewrapped +2$/m)
      .and.match(/^2 +2$/m);
    const key = await server.call('GET', 'transit/keys/orders');
    expect(key.at('data')).to.include({ latest_version: 2, min_available_version: 2, min_decryption_version: 2 });
    expect(key.at('data')).to.include({ keep_encryption_versions: 1, keep_decryption_versions: 6, trim_after: 7_776_000 });
    expect((await server.call('POST', 'transit/decrypt/orders', { ciphertext: rows[0]?.ciphertext })).status).to.equal(400);
  });

  it('destroys version 1 only once it is proved to be unused', async () => {
    const server = await bench.start({ dataDir: bench.folder() });
    await server.call('POST', 'transit/keys/orders');
    const made = await server.call('POST', 'transit/encrypt/orders', { plaintext: base64('x') });
    const ciphertext = made.string('data.ciphertext');
    const files = { 'rows.jsonl': `${JSON.stringify({ id: 1, ciphertext })}\n` };
    const env = { TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken };
    const run = (wanted: (block: string) => boolean, replace: Readonly<Record<string, string>> = {}) =>
      runBlocks(blocks.filter(wanted), { replace, files, env });
    const retires = (block: string): boolean => block.includes('--unless-used-within');
    const decrypts = async (): Promise<number> => (await server.call('POST', 'transit/decrypt/orders', { ciphertext })).status;

    const before = await run((block) => !retires(block) && !block.includes('--trim-after'));
    expect(before.code, before.stdout + before.stderr).to.equal(0);
    expect(await decrypts(), 'a reader that was forgotten').to.equal(200);
    const refused = await run(retires);
    expect(refused.code).not.to.equal(0);
    expect(refused.stderr).to.match(/unless_used_within: .*version 1/);
    expect(await decrypts()).to.equal(200);
    let last = refused;
    await until(
      'version 1 has not been used for a second',
      async () => {
        last = await run(retires, { '--unless-used-within 30d': '--unless-used-within 1s' });
        return last.code === 0;
      },
      { explain: () => last.stderr },
    );
    expect((await server.call('GET', 'transit/keys/orders')).at('data.min_available_version')).to.equal(2);
    expect(await decrypts()).to.equal(400);
  });

  it('has a check that fails while a ciphertext is old', async () => {
    const check = blocks.find((block) => block.includes('count-versions')) ?? '';
    const checked = (text: string) => runBlocks([check], { replace: {}, files: { 'rewrapped.jsonl': text } });
    const row = (version: number): string => `{"id": 1, "ciphertext": "svc:v${version}:AA"}\n`;
    for (const [text, code] of [
      [row(2) + row(3), 0],
      [row(2) + row(1), 2],
      [row(2) + row(10), 0],
      ['{"id": 1}\n', 1],
      ['', 1],
    ] as const)
      expect((await checked(text)).code, text).to.equal(code);
    expect((await runBlocks([check], { replace: {} })).code, 'no file').to.equal(1);
  });
});

describe('taking a key out of use in docs/api.md', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  after(() => bench.clean());

  it('has commands that take away the uses of a key and of a version, and give them back', async () => {
    const server = await bench.start({ dataDir: bench.folder() });
    await server.call('POST', 'transit/keys/orders');
    const { text } = await server.call('POST', 'transit/encrypt/orders', { plaintext: base64('x') });
    const { ciphertext } = JSON.parse(text).data;
    await server.call('POST', 'transit/keys/orders/rotate');
    const decrypts = async (): Promise<number> => (await server.call('POST', 'transit/decrypt/orders', { ciphertext })).status;
    const commands = shellBlocks('docs/api.md', 'Take a key or a version out of use').join('').trim().split('\n');
    const statuses: number[] = [];
    for (const command of commands) {
      const env = { TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken };
      const replace = { '--unless-used-within 30d': '--unless-used-within 0' }; // the test uses the key all the time
      const ran = await runBlocks([command], { replace, env });
      expect(ran.code, ran.stdout + ran.stderr).to.equal(0);
      statuses.push(await decrypts());
    }
    expect(statuses).to.deep.equal([400, 200, 400, 200, 200, 400, 200]);
  });
});
