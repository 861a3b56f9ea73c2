// The software bill of materials in CycloneDX 1.6 (ECMA-424), made from the lock file.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path/posix';
import { dependenciesOf, type ProductionPackage, packageAt, productionPackages } from './lock-file.ts';
import { platforms } from './node-binary.ts';
import { commitSeconds, nodeVersion, readManifest, root, version } from './project.ts';
import { closureOf, thirdPartyOf } from './workspace.ts';

const nodeRef = `pkg:generic/nodejs@${nodeVersion}`;
const ownRef = `pkg:npm/transitd@${version}`;

/** Returns the document. Equal sources make equal documents. */
export function sbom(): unknown {
  const packages = productionPackages();
  const byPath = new Map(packages.map((one) => [one.path, one]));
  const ours = closureOf('server');
  const direct = Object.keys({ ...thirdPartyOf(ours, 'dependencies'), ...thirdPartyOf(ours, 'optionalDependencies') });
  const content = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp: new Date(commitSeconds() * 1000).toISOString(),
      component: {
        type: 'application',
        'bom-ref': ownRef,
        name: 'transitd',
        version,
        purl: ownRef,
        licenses: [{ license: { id: readManifest(root).license } }],
      },
    },
    components: [node(), ...packages.map(component)],
    dependencies: [
      { ref: ownRef, dependsOn: [nodeRef, ...refsOf(byPath, '', direct)] },
      { ref: nodeRef, dependsOn: [] },
      ...packages.map((one) => ({ ref: refOf(one), dependsOn: refsOf(byPath, one.path, dependenciesOf(one)).sort() })),
    ],
  };
  return { ...content, serialNumber: `urn:uuid:${uuidOf(JSON.stringify(content))}` };
}

function node(): unknown {
  const hashes: Record<string, string> = JSON.parse(readFileSync(join(root, 'scripts/node-hashes.json'), 'utf8'));
  return {
    type: 'platform',
    'bom-ref': nodeRef,
    name: 'Node.js',
    version: nodeVersion,
    purl: nodeRef,
    licenses: [{ license: { id: 'MIT' } }],
    properties: platforms.map((name) => ({ name: `transitd:sha256:${name}`, value: hashes[name] })),
  };
}

/** Native libraries whose code is inside a package: package → library. A scanner cannot find them by the package's name. */
const embedded: Readonly<
  Record<string, readonly { readonly name: string; readonly version?: string; readonly license: string }[]>
> = {
  'classic-level': [
    { name: 'leveldb', version: '1.20', license: 'BSD-3-Clause' },
    { name: 'snappy', license: 'BSD-3-Clause' },
  ],
  'sodium-native': [{ name: 'libsodium', version: '1.0.21', license: 'ISC' }],
};

function component(one: ProductionPackage): unknown {
  const [algorithm, hash = ''] = one.integrity?.split('-') ?? [];
  if (algorithm !== 'sha512') throw new Error(`the lock file has no SHA-512 of ${one.path}`);
  return {
    type: 'library',
    'bom-ref': refOf(one),
    name: one.name,
    version: one.version,
    purl: refOf(one),
    scope: one.optional === true ? 'optional' : 'required',
    licenses: [one.license?.includes(' ') ? { expression: one.license } : { license: { id: one.license } }],
    hashes: [{ alg: 'SHA-512', content: Buffer.from(hash, 'base64').toString('hex') }],
    components: embedded[one.name]?.map(({ license, ...library }) => ({
      type: 'library',
      ...library,
      licenses: [{ license: { id: license } }],
    })),
  };
}

/** The package URL, which encodes the @ of a scope. */
const refOf = ({ name, version: locked }: ProductionPackage): string => `pkg:npm/${name.replace('@', '%40')}@${locked}`;

const refsOf = (byPath: ReadonlyMap<string, ProductionPackage>, from: string, names: readonly string[]): string[] =>
  names.flatMap((name) => packageAt(byPath, from, name) ?? []).map(refOf);

/** A UUID (version 8, RFC 9562) of the content. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `${variant}${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  );
}
