// @live
// The examples of README.md and of the client library's README, as they are written, with one node.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { type LiveServer, nodeBinary, processMs, Workbench } from '../process/live-server.ts';
import { codeBlocks, installClient, runBlocks, shellBlocks } from './page.ts';

describe('examples of the READMEs', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  before(async () => {
    server = await bench.start({ dataDir: bench.folder() });
    expect((await server.call('POST', 'transit/keys/orders')).status).to.equal(200);
  });
  after(() => bench.clean());

  it('make a round trip with curl', async () => {
    const [, session = ''] = shellBlocks('README.md', 'Try it');
    // Lines after a prompt are commands; a command continues after a backslash. The other lines are its output.
    const commands = [...session.matchAll(/^\$ ((?:.*\\\n)*.*)$/gm)].map(([, command = '']) => command);
    expect(commands).to.have.length(5);
    const { ciphertext } = (await server.call('POST', 'transit/encrypt/orders', { plaintext: 'aGVsbG8=' })).at('data') as {
      ciphertext: string;
    };
    const [printed = ''] = /svc:v1:[\w+/=]+/.exec(session) ?? [];
    const ran = await runBlocks(commands, {
      replace: {
        'http://127.0.0.1:8200': server.url,
        '$(cat .transitd/dev/root-token)': '$(cat root-token)',
        [printed]: ciphertext,
      },
      files: { 'root-token': server.rootToken },
    });
    expect(ran.code, ran.stdout + ran.stderr).to.equal(0);
    expect(ran.stdout).to.match(/"ciphertext":"svc:v1:.*"plaintext":"aGVsbG8=".*200\s*$/s);
    const fields = (text: string): readonly string[] => [
      ...new Set([...text.matchAll(/"(\w+)":/g)].map(([, name = '']) => name)),
    ];
    expect(fields(ran.stdout)).to.have.members(fields(session.replaceAll(/^\$ (?:.*\\\n)*.*$/gm, '')));
  });

  it('encrypt with the client library: one value, messages, streams', async () => {
    const blocks = codeBlocks('packages/client/README.md', 'ts');
    expect(blocks).to.have.length(3);
    const folder = bench.folder();
    installClient(folder);
    writeFileSync(
      join(folder, 'examples.ts'),
      `import { EnvelopeCipher, TransitdClient } from '@transitd/client';
      const token = process.env['TRANSITD_TOKEN'] ?? '';
      const [bytes, associatedData] = [new TextEncoder().encode('a message'), new TextEncoder().encode('customer 7')];
      const file = new Blob([new Uint8Array(3_000_000)]);
      const many = { highWaterMark: 100 };
      const { readable: download, writable: upload } = new TransformStream<Uint8Array, Uint8Array>(undefined, undefined, many);
      let received = 0;
      const target = new WritableStream<Uint8Array>({ write: (chunk) => void (received += chunk.length) });
      ${blocks.join('\n').replace("['https://n1:8200', 'https://n2:8200']", `['${server.url}']`)}
      console.log(data.ciphertext, new TextDecoder().decode(again), received);`,
    );
    const env = { ...process.env, TRANSITD_TOKEN: server.rootToken };
    const { stdout } = await promisify(execFile)(nodeBinary, [join(folder, 'examples.ts')], { env });
    expect(stdout).to.match(/^svc:v\d+:\S+ a message 3000000\n$/);
  });
});
