// Runs the shell blocks of a page in docs/ as they are written, with the addresses of the page replaced by those of live servers.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { entry, nodeBinary, root } from '../process/live-server.ts';

export interface PageRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface PageSetting {
  /** Texts of the page and their replacements, such as host names. */
  readonly replace: Readonly<Record<string, string>>;
  /** Files in the folder in which the commands run. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

/** Returns the code blocks of a language of a page, or of one of its sections, without indentation. @param heading - of the section */
export function codeBlocks(page: string, language: string, heading?: string): readonly string[] {
  const text = readFileSync(join(root, page), 'utf8');
  const section = heading === undefined ? text : text.split(/^(?=## )/m).find((one) => one.startsWith(`## ${heading}\n`));
  if (section === undefined) throw new Error(`${page} has no section ${heading}`);
  return [...section.matchAll(new RegExp(`^( *)\`\`\`${language}\\n(.*?)^\\1\`\`\`$`, 'gms'))].map(
    ([, indent = '', block = '']) => block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

/** Lets programs in this folder import the client library by its name. */
export function installClient(folder: string): void {
  const modules = join(folder, 'node_modules/@transitd');
  mkdirSync(modules, { recursive: true });
  symlinkSync(join(root, 'packages/client'), join(modules, 'client'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
}

/** Returns the `sh` blocks of a page, or of one of its sections. */
export const shellBlocks = (page: string, heading?: string): readonly string[] => codeBlocks(page, 'sh', heading);

/** Runs blocks in one shell, which ends at the first command that fails. `transitd` is the command of this checkout. */
export async function runBlocks(blocks: readonly string[], { replace, files = {}, env = {} }: PageSetting): Promise<PageRun> {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-page-'));
  try {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content, { mode: 0o600 });
    writeFileSync(join(folder, 'transitd'), `#!/bin/sh\nexec '${nodeBinary}' '${entry}' "$@"\n`, { mode: 0o755 });
    let script = blocks.join('\n');
    for (const [from, to] of Object.entries(replace)) script = script.replaceAll(from, to);
    const child = spawn('bash', ['-eo', 'pipefail', '-c', script], {
      cwd: folder,
      env: { HOME: folder, PATH: `${folder}:${process.env['PATH']}`, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [stdout, stderr, code] = await Promise.all([
      textOf(child.stdout),
      textOf(child.stderr),
      new Promise<number | null>((resolve) => child.on('close', resolve)),
    ]);
    return { code, stdout, stderr };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
