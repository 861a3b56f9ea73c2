// The licenses of everything in an archive that is not ours.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { productionPackages } from './lock-file.ts';
import { nodeFor } from './node-binary.ts';
import { nodeVersion, root } from './project.ts';

const line = '-'.repeat(80);

/** Returns the text of THIRD-PARTY-NOTICES.txt. @throws if a package has no license text */
export function notices(): string {
  const packages = productionPackages().map(({ name, version, license, path }) =>
    section(`${name} ${version} (${license})`, licenseTexts(join(root, path))),
  );
  const node = section(`Node.js ${nodeVersion}, with the libraries that it includes`, [
    readFileSync(join(nodeFor('linux-x64'), 'LICENSE'), 'utf8'),
  ]);
  return ['transitd includes the following software.\n', ...packages, node].join('\n');
}

const section = (title: string, texts: readonly string[]): string =>
  [line, title, line, '', ...texts.map((text) => `${text.trim()}\n`)].join('\n');

function licenseTexts(folder: string): string[] {
  const files = readdirSync(folder)
    .filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
    .sort();
  if (files.length === 0) throw new Error(`${folder} has no license text`);
  return files.map((file) => readFileSync(join(folder, file), 'utf8'));
}
