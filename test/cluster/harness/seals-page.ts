import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../process/live-server.ts';

/** Returns the first block of a language below a heading of docs/seals.md. */
export function blockOf(language: string, heading: string): string {
  const page = readFileSync(join(root, 'docs/seals.md'), 'utf8');
  const section = page.slice(page.indexOf(`\n## ${heading}\n`));
  const block = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(section)?.[1];
  if (block === undefined) throw new Error(`no ${language} block below ${heading}`);
  return block;
}
