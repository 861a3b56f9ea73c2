// Installs what a fresh clone lacks, then lets npm go on. Runs on the machine's own Node (20.19 or newer), so plain
// JavaScript and no dependencies. The stamp makes the second run cost nothing.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
process.chdir(root);

/** SHA-256 of `node_modules/node/bin/node` per platform: the npm package fetches it outside the lock file. */
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
  const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ['npm'];
  const run = (...args) => spawnSync(npm[0], [...npm.slice(1), ...args], { stdio: ['ignore', 2, 2] }).status === 0;
  console.error('installing dependencies (npm ci) …');
  // Every version of npm runs no script of a package this way; `allowScripts` in package.json says the same to those that know it.
  if (!run('ci', '--ignore-scripts')) fail('npm ci failed');
  // The one exception fetches the Node binary, whose hash is checked below.
  if (!run('rebuild', 'node', '--ignore-scripts=false')) fail('npm rebuild node failed');
  verifyNode();
  writeFileSync(stamp, wanted);
}

/** Refuses a Node binary that is not the one this repository was tested with. */
function verifyNode() {
  const binary = `node_modules/node/bin/node${process.platform === 'win32' ? '.exe' : ''}`;
  if (!existsSync(binary)) fail(`${binary} is missing: npm was told not to run the install script of the package "node"`);
  const hash = createHash('sha256').update(readFileSync(binary)).digest('hex');
  const expected = nodeHashes[`${process.platform}-${process.arch}`];
  if (expected === undefined) {
    console.error(
      `install: no known hash of the Node binary for ${process.platform}-${process.arch}; add ${hash} to scripts/node-hashes.json after checking it`,
    );
  } else if (hash !== expected) {
    fail(`the Node binary has the SHA-256 ${hash}, expected ${expected}`);
  }
}
