// The libraries that a node loads when it starts. Each module costs CPU time in every node and once more in every gateway.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect } from 'chai';
import { importsOf } from '../scripts/check/module.ts';

const packages = join(import.meta.dirname, '../packages');
const starts = ['run-server.ts', 'dev.ts', 'gateway-thread.ts'].map((name) => join(packages, 'server/src', name));

/** Libraries that our sources import only when a node first needs them: they have some 500 modules, and most nodes need none. */
const onDemand = [
  '@connectrpc/connect-node',
  '@noble/curves/abstract/edwards.js',
  '@noble/curves/ed25519.js',
  '@noble/curves/nist.js',
  '@opentelemetry/api',
  '@opentelemetry/core',
  '@opentelemetry/otlp-transformer',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace',
  '@peculiar/asn1-csr',
  '@peculiar/asn1-schema',
  '@peculiar/asn1-x509',
  '@peculiar/x509',
  'jose',
  'node-forge',
  'pino-pretty',
  'yaml',
];

/** Modules that a node never imports: `nodeHttp` of the package `process` says why. */
const never = ['node:http', 'undici'];

/** Returns what a source imports before it runs. */
function loadedBy(path: string): readonly string[] {
  const known = loaded.get(path);
  if (known !== undefined) return known;
  const imports = importsOf({ path, text: readFileSync(path, 'utf8') });
  const specifiers = imports.flatMap(({ kind, specifier }) => (kind === 'static' ? [specifier] : []));
  loaded.set(path, specifiers);
  return specifiers;
}
const loaded = new Map<string, readonly string[]>();

/** Returns the file of this project that a source imports; undefined for a library. */
function fileOf(specifier: string, from: string): string | undefined {
  if (specifier.startsWith('.')) return resolve(dirname(from), specifier);
  const [, name] = /^@transitd\/([^/]+)$/.exec(specifier) ?? [];
  return name === undefined ? undefined : join(packages, name, 'src/index.ts');
}

/** Returns the libraries that are loaded with a source, each with the first source that imports it. */
function librariesOf(start: string): ReadonlyMap<string, string> {
  const libraries = new Map<string, string>();
  const seen = new Set([start]);
  for (const file of seen) {
    for (const specifier of loadedBy(file)) {
      const next = fileOf(specifier, file);
      if (next === undefined) libraries.set(specifier, libraries.get(specifier) ?? file);
      else if (next.endsWith('.ts')) seen.add(next);
    }
  }
  return libraries;
}

describe('the start of a node', () => {
  it('refuses every release of Node before the one that a checkout installs', () => {
    const { devDependencies } = JSON.parse(readFileSync(join(packages, '../package.json'), 'utf8'));
    const [major, minor] = devDependencies.node.split('.');
    const source = readFileSync(join(packages, 'server/transitd.mjs'), 'utf8');
    expect(source).to.include(`major < ${major} || (major === ${major} && minor < ${minor})`);
    expect(source).to.include(`needs Node.js ${major}.${minor} or later`);
  });

  it('reads the sources of every start', () => {
    expect(starts.filter((file) => !existsSync(file))).to.deep.equal([]);
    for (const start of starts) expect([...librariesOf(start).keys()]).to.include.members(['node:fs', 'zod']);
  });

  it('loads no library that a node needs only at times', () => {
    const found = starts.flatMap((start) => {
      const libraries = librariesOf(start);
      return [...onDemand, ...never].flatMap((name) => (libraries.has(name) ? [`${libraries.get(name)} imports ${name}`] : []));
    });
    expect(found).to.deep.equal([]);
  });
});
