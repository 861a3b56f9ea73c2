// Installs the npm packages in an empty folder, as their users do.
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { root } from '../../scripts/release/project.ts';
import { Folders, machinePath, npmArchives, shellLines } from './artifacts.ts';
import { DevNode } from './dev-node.ts';
import { LocalRegistry } from './local-registry.ts';

const node24 = dirname(process.execPath);
const folders = new Folders();
let registry: LocalRegistry;
let folder: string;
let env: NodeJS.ProcessEnv;
let node: DevNode | undefined;

const shell = (line: string): Promise<{ stdout: string }> => promisify(execFile)('sh', ['-c', line], { cwd: folder, env });

before(async () => {
  registry = await LocalRegistry.start(npmArchives());
  folder = folders.empty();
  env = {
    PATH: [node24, machinePath].join(delimiter),
    HOME: folders.empty(),
    npm_config_registry: registry.url,
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
  };
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
});

after(async () => {
  await node?.stop();
  registry.close();
  folders.clean();
});

describe('the npm package transitd', () => {
  const [install = '', start = ''] = shellLines('scripts/release/npm-readme.md');

  it(`installs without a compiler: ${install}`, async () => {
    expect(install).to.match(/^npm install /);
    await shell(install);
  });

  it(`starts a node that encrypts: ${start}`, async () => {
    expect(start).to.match(/^npx transitd server --dev/);
    node = await DevNode.start({ command: start.split(' '), cwd: folder, env });
    expect(await node.roundTrip()).to.match(/^svc:v1:/);
    await node.expectConsole();
  });

  it('has the command line, with the version of the release', async () => {
    expect((await shell('npx transitd version')).stdout).to.include('0.1.0');
  });

  it('says in one sentence which Node it needs', () => {
    const old = machineNode();
    const { status, stderr } = spawnSync(old, [join(folder, 'node_modules/transitd/transitd.mjs'), 'version'], {
      encoding: 'utf8',
    });
    expect({ status, lines: stderr.trim().split('\n').length }).to.deep.equal({ status: 1, lines: 1 });
    expect(stderr).to.match(/^transitd needs Node\.js 24\.21 or later, this is /);
  });
});

describe('the npm package @transitd/client', () => {
  const program = `
    import { TransitdClient, RefusedError } from '@transitd/client';
    const client = new TransitdClient({ addresses: [process.argv[2] ?? ''], token: process.argv[3] ?? '' });
    const { data } = await client.transit().encrypt('orders', btoa('hello'));
    const { data: decrypted } = await client.transit().decrypt('orders', data.ciphertext);
    console.log(atob(decrypted.plaintext));
    const refused: unknown = await client.transit().decrypt('orders', 'nonsense').catch((error: unknown) => error);
    console.log(refused instanceof RefusedError && refused.status);`;

  it('installs, and depends on nothing', async () => {
    const { stdout } = await shell('npm install @transitd/client && npm ls --all @transitd/client --parseable --long');
    expect(stdout).to.match(/node_modules\/@transitd\/client:@transitd\/client@/);
  });

  it('has declarations that a strict compiler accepts, without types of Node', async () => {
    mkdirSync(join(folder, 'out'));
    writeFileSync(join(folder, 'use.ts'), `declare const process: { readonly argv: readonly string[] };${program}`);
    const options =
      '--strict --exactOptionalPropertyTypes --module nodenext --target es2023 --lib es2023,dom --types "" --outDir out';
    await shell(`${join(root, 'node_modules/.bin/tsc')} ${options} use.ts`);
  });

  it('encrypts and reports refusals on the Node of this machine, 20 or newer', async () => {
    if (node === undefined) throw new Error('the node of the previous tests does not run');
    const { stdout } = await promisify(execFile)(machineNode(), ['out/use.js', node.address, node.token], { cwd: folder, env });
    expect(stdout).to.equal('hello\n400\n');
  });
});

/** Returns a Node older than 24, which the promises about other versions need. @throws if the machine has none */
function machineNode(): string {
  const candidates = [process.env['OLD_NODE'], ...machinePath.split(delimiter).map((path) => join(path, 'node'))];
  for (const candidate of candidates) {
    if (candidate === undefined) continue;
    const { stdout } = spawnSync(candidate, ['-p', 'process.versions.node'], { encoding: 'utf8' });
    const major = Number.parseInt(stdout ?? '', 10);
    if (major >= 20 && major < 24) return candidate;
  }
  throw new Error('this test needs Node.js 20 to 23: on PATH, or its path in OLD_NODE');
}
