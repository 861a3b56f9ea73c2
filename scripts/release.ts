// `npm run release -- --dry-run`: makes every artifact of a release below dist/, then installs and runs each in an empty folder.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { pack, stageClient, stageServer } from './release/npm-packages.ts';
import { git, root, version } from './release/project.ts';
import { compile } from './release/workspace.ts';

const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean' } } });
if (values['dry-run'] !== true) refuseUnlessReleasable();

const out = join(root, 'dist');
const stage = mkdtempSync(join(tmpdir(), 'transitd-release-'));
try {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out);
  step('compile', compile);
  step('npm packages', () => {
    stageClient(join(stage, 'client'));
    stageServer(join(stage, 'transitd'));
    for (const name of ['client', 'transitd']) pack(join(stage, name), out);
  });
} finally {
  rmSync(stage, { recursive: true });
}
process.exitCode = testArtifacts();

/** Only a dry run may release something that has no tag, or files that no commit has. */
function refuseUnlessReleasable(): void {
  const tag = `v${version}`;
  const faults = [
    ...(git('status', '--porcelain') === '' ? [] : ['the working tree has changes that are not committed']),
    ...(git('tag', '--points-at', 'HEAD').split('\n').includes(tag) ? [] : [`the commit does not have the tag ${tag}`]),
  ];
  for (const fault of faults) console.error(`release: ${fault}`);
  if (faults.length > 0) process.exit(1);
}

function step(name: string, run: () => void): void {
  const begin = performance.now();
  run();
  console.log(`release: ${name} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
}

function testArtifacts(): number {
  const { status } = spawnSync(join(root, 'node_modules/.bin/mocha'), ['--config', 'test/release/.mocharc.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  return status ?? 1;
}
