// `npm run site`: builds the documentation site in site/dist, with search. Installs its packages first, which only it needs.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writePages } from './references/pages.ts';

const site = join(import.meta.dirname, '../site');
const stamp = join(site, 'node_modules/.installed');
const wanted = createHash('sha256')
  .update(readFileSync(join(site, 'package-lock.json')))
  .digest('hex');
const run = (command: string, args: readonly string[]): void => {
  const { status } = spawnSync(command, args, { cwd: site, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
};

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
  run('npm', ['ci', '--ignore-scripts']);
  writeFileSync(stamp, wanted);
}
await writePages();
run(process.execPath, [join(site, 'node_modules/vitepress/bin/vitepress.js'), 'build']);
// The diagrams of a page load Mermaid's own bundle and its parts in the browser.
const [mermaid, bundle] = [join(site, 'node_modules/mermaid/dist'), 'mermaid.esm.min'];
cpSync(join(mermaid, `${bundle}.mjs`), join(site, 'dist/mermaid', `${bundle}.mjs`));
cpSync(join(mermaid, 'chunks', bundle), join(site, 'dist/mermaid/chunks', bundle), {
  recursive: true,
  filter: (file) => !file.endsWith('.map'),
});
