// @live
// Runs the programs of docs/first-steps.md as they are written.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { codeBlocks, installClient, runBlocks, shellBlocks } from '../docs/page.ts';
import { type LiveServer, nodeBinary, Workbench } from '../process/live-server.ts';
import { buildMs, fast, needGoModules } from './go-programs.ts';
import { pythonWith } from './python.ts';
import { type Ended, run } from './run.ts';

const page = 'docs/first-steps.md';
const text = 'card 4711';

function blockIn(language: string): string {
  const [block] = codeBlocks(page, language);
  if (block === undefined) throw new Error(`${page} has no block in ${language}`);
  return block;
}

describe(page, function () {
  this.timeout(buildMs);
  const bench = new Workbench();
  let server: LiveServer;
  before(async () => {
    server = await bench.start({ dataDir: bench.folder() });
    expect((await server.call('POST', 'transit/keys/orders')).status).to.equal(200);
  });
  after(() => bench.clean());

  const env = (): Readonly<Record<string, string>> => ({ TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken });
  const expectText = ({ code, stdout, stderr }: Omit<Ended, 'code'> & { readonly code: number | null }): void => {
    expect(code, stderr).to.equal(0);
    expect(stdout).to.equal(text);
  };
  const written = (name: string, language: string): string => {
    const file = join(bench.folder(), name);
    writeFileSync(file, blockIn(language));
    return file;
  };

  it('encrypts and decrypts with curl', async () => {
    const replace = { 'https://n1.example:8200': server.url };
    expectText(await runBlocks(shellBlocks(page, 'From a program'), { replace, files: { token: server.rootToken } }));
  });

  it('encrypts and decrypts in TypeScript', async () => {
    const file = written('example.ts', 'ts');
    installClient(dirname(file));
    expectText(await run(nodeBinary, [file], { env: env() }));
  });

  it('encrypts and decrypts in Python', async function () {
    const python = await pythonWith(['hvac==2.4.0']);
    if (python === undefined) return this.skip();
    expectText(await run(python, [written('example.py', 'python')], { env: env() }));
  });

  it('encrypts and decrypts in Go', async function () {
    const cwd = await needGoModules(this);
    const file = written('main.go', 'go');
    expectText(await run('go', ['run', ...fast, file], { cwd, env: { ...env(), CGO_ENABLED: '0' } }));
  });
});
