// Installs missing dependencies after a fresh clone; npm then continues. Runs on the machine's Node (20.19 or newer), so it is plain
// JavaScript without dependencies. A stamp file makes the second run instant.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
process.chdir(root);

/** SHA-256 of `node_modules/node/bin/node` for each platform: the npm package downloads it outside the lock file. */
const nodeHashes = JSON.parse(readFileSync('scripts/node-hashes.json', 'utf8'));

const stamp = 'node_modules/.installed';
const wanted = createHash('sha256')
  .update(readFileSync('package-lock.json'))
  .update(JSON.stringify(nodeHashes))
  .update(`${process.platform} ${process.arch}`)
  .digest('hex');

function fail(message) {
  console.error(`install: ${message}`);
  process.exit(1);
}

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) fail(`Node.js 20.19 or newer is needed, this is ${process.versions.node}`);
  // npm ci deletes node_modules first, and with it the Node that runs this if it was started by the one in there. So npm runs on a copy.
  const copies = mkdtempSync(join(tmpdir(), 'transitd-install-'));
  process.on('exit', () => rmSync(copies, { recursive: true }));
  const node = join(copies, basename(process.execPath));
  copyFileSync(process.execPath, node);
  const npm = process.env.npm_execpath ? [node, process.env.npm_execpath] : ['npm'];
  const env = { ...process.env, PATH: `${copies}${delimiter}${process.env.PATH}` };
  const run = (...args) => spawnSync(npm[0], [...npm.slice(1), ...args], { stdio: ['ignore', 2, 2], env }).status === 0;
  console.error('installing dependencies (npm ci) …');
  // Makes every npm version ignore package scripts; `allowScripts` in package.json does so only in newer versions.
  if (!run('ci', '--ignore-scripts')) fail('npm ci failed');
  // The one exception downloads the Node binary, whose hash is checked below.
  if (!run('rebuild', 'node', '--ignore-scripts=false')) fail('npm rebuild node failed');
  verifyNode();
  writeFileSync(stamp, wanted);
}

/** Refuses a Node binary other than the tested one. */
function verifyNode() {
  const binary = `node_modules/node/bin/node${process.platform === 'win32' ? '.exe' : ''}`;
  if (!existsSync(binary)) fail(`${binary} is missing: npm was told not to run the install script of the package "node"`);
  const hash = createHash('sha256').update(readFileSync(binary)).digest('hex');
  const expected = nodeHashes[`${process.platform}-${process.arch}`];
  if (expected === undefined) {
    console.error(
      `install: no known hash of the Node binary for ${process.platform}-${process.arch}; ` +
        `add ${hash} to scripts/node-hashes.json after checking it`,
    );
  } else if (hash !== expected) {
    fail(`the Node binary has the SHA-256 ${hash}, expected ${expected}`);
  }
}
