// `npm run release -- --dry-run`: makes every artifact of a release below dist/, then installs and runs each in an empty folder.
// A dry run compresses less, which saves half a minute of processor time.
//   --key FILE     Ed25519 private key that signs SHA256SUMS; needed unless it is a dry run
//   --builder URI  where it was built, for the provenance
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeDashboards } from './dashboards.ts';
import { parseArgs } from './parse-args.ts';
import { folderName, hasPkcs11, packFolder, stageArchive } from './release/archive.ts';
import { buildDebianPackage } from './release/debian-package.ts';
import { platforms } from './release/node-binary.ts';
import { notices } from './release/notices.ts';
import { pack, stageClient, stageServer } from './release/npm-packages.ts';
import { git, gzipLevelVariable, root, version } from './release/project.ts';
import { provenance } from './release/provenance.ts';
import { sbom } from './release/sbom.ts';
import { artifactsIn, signingKey, writeSums } from './release/sums.ts';
import { compile, writeJson } from './release/workspace.ts';

const { values } = parseArgs({
  options: {
    'dry-run': { type: 'boolean' },
    key: { type: 'string' },
    builder: { type: 'string', default: 'urn:transitd:a-maintainers-machine' },
  },
});
if (values['dry-run'] !== true) refuseUnlessReleasable();
// The tests of the artifacts make an archive again, at the same level.
else process.env[gzipLevelVariable] = '1';

const key = signingKey(values.key);
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
  for (const platform of platforms)
    step(`archive for ${platform}${hasPkcs11(platform) ? '' : ', without the native part of PKCS#11'}`, () => {
      stageArchive(platform, join(stage, folderName(platform)));
      packFolder(join(stage, folderName(platform)), join(out, `${folderName(platform)}.tar.gz`));
    });
  for (const platform of platforms)
    step(`Debian package for ${platform}`, () =>
      buildDebianPackage(platform, { archive: join(stage, folderName(platform)), stage: join(stage, `debian-${platform}`), out }),
    );
  step('dashboards and Kubernetes manifests', () => {
    const name = `transitd-${version}-dashboards`;
    writeDashboards(join(stage, name));
    packFolder(join(stage, name), join(out, `${name}.tar.gz`));
    copyFileSync(join(root, 'deploy/kubernetes/transitd.yaml'), join(out, `transitd-${version}-kubernetes.yaml`));
  });
  step('notices, bill of materials, provenance, sums', () => {
    writeFileSync(join(out, 'THIRD-PARTY-NOTICES.txt'), notices());
    writeJson(join(out, `transitd-${version}.cdx.json`), sbom());
    const built = { builder: values.builder, dryRun: values['dry-run'] === true };
    writeJson(join(out, `transitd-${version}.provenance.json`), provenance(artifactsIn(out), built));
    writeSums(out, key);
  });
} finally {
  rmSync(stage, { recursive: true });
}
process.exitCode = testArtifacts();

/** Only a dry run may release something that has no tag, or files that no commit has. */
function refuseUnlessReleasable(): void {
  const tag = `v${version}`;
  const faults = [
    ...(values.key === undefined ? ['--key FILE is missing: the key that signs the release'] : []),
    ...platforms
      .filter((one) => one === 'linux-x64' && !hasPkcs11(one))
      .map(() => 'run "npm run build:pkcs11" first, on Linux x64'),
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
