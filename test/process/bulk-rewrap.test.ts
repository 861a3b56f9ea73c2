// @live
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { base64, type LiveServer, processMs, Workbench } from './live-server.ts';
import { expectCode, run } from './transitd-command.ts';

describe('transitd key rewrap --file', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  before(async () => {
    server = await bench.start({ dataDir: bench.folder() });
  });
  after(() => bench.clean());

  it('rewraps every line of a live key, and names the lines that fail', async () => {
    const folder = bench.folder();
    const env = { HOME: folder, TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken };
    const [input, output] = [join(folder, 'in.jsonl'), join(folder, 'out.jsonl')];
    await server.call('POST', 'transit/keys/rows');
    const batch = Array.from({ length: 700 }, (_, id) => ({
      plaintext: base64(`row ${id}`),
      ...(id % 2 === 1 && { associated_data: base64(`of row ${id}`) }),
    }));
    const made = await server.call('POST', 'transit/encrypt/rows', { batch_input: batch });
    const rows = (made.at('data.batch_results') as { ciphertext: string }[]).map(({ ciphertext }, id) => ({
      ...batch[id],
      plaintext: undefined,
      id,
      ciphertext,
    }));
    const broken = { id: 'x', ciphertext: 'svc:v1:AAAA' };
    writeFileSync(input, `${[...rows, broken].map((row) => JSON.stringify(row)).join('\n')}\n`);
    await server.call('POST', 'transit/keys/rows/rotate');
    const ran = expectCode(await run(['key', 'rewrap', 'rows', '--file', input, '--out', output, '--format=json'], { env }), 2);
    expect(ran.json(), ran.stderr).to.include({ lines: 701, rewrapped: 700, failed: 1 });
    expect(ran.stderr).to.match(/^line 701: \S/m);
    const results = readFileSync(output, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as (typeof rows)[number]);
    expect(results.pop()).to.deep.equal(broken);
    for (const { ciphertext } of results) expect(ciphertext).to.match(/^svc:v2:/);
    const opened = await server.call('POST', 'transit/decrypt/rows', { batch_input: results });
    expect((opened.at('data.batch_results') as { plaintext: string }[]).map(({ plaintext }) => plaintext)).to.deep.equal(
      batch.map(({ plaintext }) => plaintext),
    );
    expectCode(await run(['key', 'rewrap', 'rows', '--file', input], { env }), 1, 'no output');
    expectCode(await run(['key', 'rewrap', 'rows', 'svc:v1:x', '--file', input, '--out', output], { env }), 1, 'both');
  });
});
