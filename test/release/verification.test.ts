// Everything that a user needs to verify a release: sums, signature, bill of materials, notices, provenance.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { productionPackages } from '../../scripts/release/lock-file.ts';
import { nodeVersion, version } from '../../scripts/release/project.ts';
import { artifactsIn, signingKey } from '../../scripts/release/sums.ts';
import { artifact, Folders } from './artifacts.ts';

const out = dirname(artifact('SHA256SUMS'));
const folders = new Folders();
after(() => folders.clean());

interface Bom {
  readonly components: readonly {
    readonly 'bom-ref': string;
    readonly purl: string;
    readonly hashes?: readonly unknown[];
    readonly components?: readonly { readonly name: string }[];
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}
const readBom = (): Bom => JSON.parse(readFileSync(artifact(`transitd-${version}.cdx.json`), 'utf8'));

describe('the sums of a release', () => {
  const signed = ['SHA256SUMS', 'SHA256SUMS.sig', 'release-key.pub.pem'];
  const verify = (folder: string): number | null =>
    spawnSync(
      'openssl',
      [
        'pkeyutl',
        '-verify',
        '-pubin',
        '-inkey',
        'release-key.pub.pem',
        '-rawin',
        '-in',
        'SHA256SUMS',
        '-sigfile',
        'SHA256SUMS.sig',
      ],
      { cwd: folder },
    ).status;

  it('cover every other file, and sha256sum accepts them', () => {
    execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: out, stdio: 'pipe' });
    const listed = readFileSync(join(out, 'SHA256SUMS'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(66));
    const files = artifactsIn(out).map(({ name }) => name);
    expect(listed).to.deep.equal(files.filter((name) => !signed.includes(name)));
  });

  it('have a signature that openssl verifies, and refuses for changed sums', () => {
    expect(verify(out)).to.equal(0);
    const folder = folders.empty();
    for (const name of signed) cpSync(join(out, name), join(folder, name));
    writeFileSync(
      join(folder, 'SHA256SUMS'),
      readFileSync(join(out, 'SHA256SUMS'), 'utf8').replace(/^./, (hex) => (hex === '0' ? '1' : '0')),
    );
    expect(verify(folder)).to.equal(1);
  });

  it('are signed with a key that openssl makes, and with no other kind', () => {
    const folder = folders.empty();
    const make = (algorithm: string, file: string): string => {
      execFileSync('openssl', ['genpkey', '-algorithm', algorithm, '-out', join(folder, file)], { stdio: 'pipe' });
      return join(folder, file);
    };
    expect(signingKey(make('ed25519', 'key.pem')).asymmetricKeyType).to.equal('ed25519');
    expect(() => signingKey(make('x25519', 'other.pem'))).to.throw('is not an Ed25519 key');
  });
});

describe('the bill of materials', () => {
  it('lists every package of the production tree with its SHA-512, and Node', () => {
    const { components } = readBom();
    const wanted = productionPackages().map(({ name, version: locked }) => `pkg:npm/${name.replace('@', '%40')}@${locked}`);
    const listed = components.map(({ purl }) => purl);
    expect(listed).to.deep.equal([`pkg:generic/nodejs@${nodeVersion}`, ...wanted]);
    expect(components.filter(({ purl, hashes }) => purl.startsWith('pkg:npm/') && hashes?.length !== 1)).to.deep.equal([]);
  });

  it('names the native libraries inside packages that have a license for them', () => {
    const inside = readBom().components.flatMap(({ components = [] }) => components.map(({ name }) => name));
    expect(inside).to.deep.equal(['leveldb', 'snappy', 'libsodium']);
    const notices = readFileSync(artifact('THIRD-PARTY-NOTICES.txt'), 'utf8');
    for (const holder of ['The LevelDB Authors', 'Google Inc', 'Frank Denis']) expect(notices).to.include(holder);
  });

  it('connects every component with transitd', () => {
    const { components, dependencies } = readBom();
    const edges = new Map(dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
    const reached = new Set<string>();
    const visit = (ref: string): void => {
      if (reached.has(ref)) return;
      reached.add(ref);
      for (const next of edges.get(ref) ?? []) visit(next);
    };
    visit(`pkg:npm/transitd@${version}`);
    expect(components.map((one) => one['bom-ref']).filter((ref) => !reached.has(ref))).to.deep.equal([]);
  });
});

describe('the notices', () => {
  it('have a section for every package and for Node', () => {
    const text = readFileSync(artifact('THIRD-PARTY-NOTICES.txt'), 'utf8');
    const titles = new Set(text.split('\n'));
    const missing = productionPackages().filter((one) => !titles.has(`${one.name} ${one.version} (${one.license})`));
    expect(missing).to.deep.equal([]);
    expect(text).to.include(`Node.js ${nodeVersion}`).and.include('Node.js is licensed for use as follows');
  });
});

describe('the provenance', () => {
  it('names every artifact by its hash, and the commit', () => {
    const { subject, predicate } = JSON.parse(readFileSync(artifact(`transitd-${version}.provenance.json`), 'utf8'));
    const artifacts = artifactsIn(out).filter(({ name }) => /\.(tgz|tar\.gz|deb|yaml|txt|cdx\.json)$/.test(name));
    expect(subject).to.deep.equal(artifacts.map(({ name, sha256 }) => ({ name, digest: { sha256 } })));
    const [source] = predicate.buildDefinition.resolvedDependencies;
    expect(source.digest.gitCommit).to.match(/^[0-9a-f]{40}$/);
  });
});
