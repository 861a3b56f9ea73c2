// The Node.js that an archive includes, from the npm package of its platform. Its hash must be the one in scripts/node-hashes.json.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { npm } from './npm.ts';
import { nodeVersion, root } from './project.ts';

/** Platforms with an archive: those that the npm packages offer and whose hash is known. */
export const platforms = ['linux-x64', 'linux-arm64'] as const;
export type Platform = (typeof platforms)[number];

const cache = join(root, 'node_modules/.cache/transitd-release');

/**
 * Returns the folder with `bin/node` and `LICENSE` of a platform; downloads it once.
 * @throws if the binary is not the tested one
 */
export function nodeFor(platform: Platform): string {
  const name = `node-${platform}`;
  const folder = join(cache, `${name}-${nodeVersion}`);
  if (!existsSync(folder)) download(`${name}@${nodeVersion}`, folder);
  const expected: unknown = JSON.parse(readFileSync(join(root, 'scripts/node-hashes.json'), 'utf8'))[platform];
  const hash = createHash('sha256')
    .update(readFileSync(join(folder, 'bin/node')))
    .digest('hex');
  if (hash !== expected) throw new Error(`the Node binary of ${name} has the SHA-256 ${hash}, expected ${expected}`);
  return folder;
}

function download(name: string, folder: string): void {
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(cache, 'download-'));
  try {
    npm(['pack', name, '--prefer-offline', '--ignore-scripts', '--pack-destination', work], root);
    const [archive = ''] = readdirSync(work);
    execFileSync('tar', ['-C', work, '-xzf', join(work, archive), 'package/bin/node', 'package/LICENSE']);
    renameSync(join(work, 'package'), folder);
  } finally {
    rmSync(work, { recursive: true });
  }
}
