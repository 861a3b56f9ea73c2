import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../process/live-server.ts';

/** Returns the blocks of a language below a heading of docs/seals.md. */
export function blocksOf(language: string, heading: string): readonly string[] {
  const page = readFileSync(join(root, 'docs/seals.md'), 'utf8');
  const [, section = ''] = page.split(`\n## ${heading}\n`);
  const [own = ''] = section.split('\n## ');
  const blocks = [...own.matchAll(new RegExp(`^ *\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'gm'))].map(([, block = '']) => block);
  if (blocks.length === 0) throw new Error(`no ${language} block below ${heading}`);
  return blocks;
}

/** Returns the first block of a language below a heading of docs/seals.md. */
export const blockOf = (language: string, heading: string): string => blocksOf(language, heading)[0] ?? '';
