// The licenses of everything in an archive that is not ours.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type ProductionPackage, productionPackages } from './lock-file.ts';
import { nodeFor } from './node-binary.ts';
import { nodeVersion, root } from './project.ts';

const line = '-'.repeat(80);

/** Returns the text of THIRD-PARTY-NOTICES.txt. @throws if a package has no license text */
export function notices(): string {
  const packages = productionPackages().map(noticeOf);
  const node = section(`Node.js ${nodeVersion}, with the libraries that it includes`, [
    readFileSync(join(nodeFor('linux-x64'), 'LICENSE'), 'utf8'),
  ]);
  const libsodium = section('libsodium, inside sodium-native (ISC)', [
    readFileSync(join(import.meta.dirname, 'licenses/libsodium.txt'), 'utf8'), // its package has no copy
  ]);
  return ['transitd includes the following software.\n', ...packages, libsodium, node].join('\n');
}

/** Returns the section of one package. @throws if it has no license text */
export const noticeOf = ({ name, version, license, path }: ProductionPackage): string =>
  section(`${name} ${version} (${license})`, ownTexts(name) ?? licenseTexts(join(root, path)));

/** Packages under the Apache License without a copy of it: the file with their copyright notice. */
const withoutText: Readonly<Record<string, string>> = {
  '@aws-sdk/credential-provider-http': 'aws-sdk.txt',
  '@aws-sdk/credential-provider-login': 'aws-sdk.txt',
  '@aws-sdk/nested-clients': 'aws-sdk.txt',
  '@bufbuild/protobuf': 'bufbuild-protobuf.txt',
  '@connectrpc/connect': 'connect.txt',
  '@connectrpc/connect-node': 'connect.txt',
};

/** Returns the texts of a package that has none of its own; undefined for any other package. */
function ownTexts(name: string): string[] | undefined {
  const file = withoutText[name];
  if (file === undefined) return undefined;
  const apacheLicense = readFileSync(join(root, 'LICENSE'), 'utf8'); // ours is the same
  return [readFileSync(join(import.meta.dirname, 'licenses', file), 'utf8'), apacheLicense];
}

const section = (title: string, texts: readonly string[]): string =>
  [line, title, line, '', ...texts.map((text) => `${text.trim()}\n`)].join('\n');

/** Returns the texts of a package and of the libraries whose code it contains, but not of the packages nested in it. */
function licenseTexts(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /(^|\/)(licen[cs]e|copying|notice)[^/]*$/i.test(file) && !/(^|\/)node_modules\/|\.[cm]?[jt]s$/.test(file))
    .filter((file) => statSync(join(folder, file)).isFile())
    .sort();
  if (!files.some((file) => !file.includes('/'))) throw new Error(`${folder} has no license text`);
  return files.map((file) => readFileSync(join(folder, file), 'utf8'));
}
