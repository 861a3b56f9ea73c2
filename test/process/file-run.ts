// Encrypts a large file with the real command, kills it on the way, continues, and decrypts; watches the memory of the processes.
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomFillSync } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { entry, nodeBinary } from './live-server.ts';

export interface FileRun {
  readonly bytes: number;
  /** SHA-256 of the original and of the decrypted file. */
  readonly hashes: readonly [string, string];
  /** Most memory of the encryption and of the decryption, in MiB. */
  readonly peakMiB: readonly [number, number];
  readonly seconds: readonly [number, number];
  /** Size of the output when the first run was killed. */
  readonly killedAtBytes: number;
}

const pieceBytes = 4 * 1024 * 1024;

/** @param folder - has room for twice the size @param env - address and token of a node with the key `files` */
export async function runFileEncryption(bytes: number, folder: string, env: Readonly<Record<string, string>>): Promise<FileRun> {
  const [plain, sealed, opened] = ['plain', 'sealed', 'opened'].map((name) => join(folder, name)) as [string, string, string];
  const original = writeRandom(plain, bytes);
  // An encryption cannot be continued if its file was changed a moment before.
  while (Date.now() - statSync(plain).ctimeMs <= 2_500) await setImmediate();

  const first = start(['key', 'encrypt-file', 'files', plain, sealed], env);
  while (sizeOf(`${sealed}.part`) < bytes / 3 && first.exitCode === null) await setImmediate();
  first.kill('SIGKILL');
  await closed(first);
  // A small file may be complete before the signal arrives: then the output is cut instead.
  if (existsSync(sealed)) {
    renameSync(sealed, `${sealed}.part`);
    truncateSync(`${sealed}.part`, Math.ceil(bytes / 2));
  }
  const killedAtBytes = sizeOf(`${sealed}.part`);

  const encrypted = await measured(['key', 'encrypt-file', 'files', plain, sealed, '--resume'], env);
  rmSync(plain);
  const decrypted = await measured(['key', 'decrypt-file', 'files', sealed, opened], env);
  return {
    bytes,
    hashes: [original, await hashOf(opened)],
    peakMiB: [encrypted.peakMiB, decrypted.peakMiB],
    seconds: [encrypted.seconds, decrypted.seconds],
    killedAtBytes,
  };
}

function writeRandom(path: string, bytes: number): string {
  const hash = createHash('sha256');
  const piece = Buffer.alloc(Math.min(pieceBytes, bytes));
  const file = openSync(path, 'wx');
  try {
    for (let left = bytes; left > 0; left -= piece.length) {
      const part = randomFillSync(piece.subarray(0, Math.min(left, piece.length)));
      hash.update(part);
      writeSync(file, part);
    }
  } finally {
    closeSync(file);
  }
  return hash.digest('hex');
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: pieceBytes })) hash.update(chunk);
  return hash.digest('hex');
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

const start = (args: readonly string[], env: Readonly<Record<string, string>>): ChildProcess =>
  spawn(nodeBinary, [entry, ...args], { env: { PATH: process.env['PATH'], ...env }, stdio: ['ignore', 'ignore', 'pipe'] });

const closed = (child: ChildProcess): Promise<number | null> => new Promise((resolve) => child.on('close', resolve));

/** Runs a command and polls its largest resident set. @throws if it fails */
async function measured(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly peakMiB: number; readonly seconds: number }> {
  const startMs = performance.now();
  const child = start(args, env);
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  let peakMiB = 0;
  const timer = setInterval(() => {
    peakMiB = Math.max(peakMiB, residentMiB(child.pid));
  }, 5);
  const code = await closed(child);
  clearInterval(timer);
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${errors}`);
  return { peakMiB, seconds: (performance.now() - startMs) / 1000 };
}

/** The high-water mark of the resident set; 0 when the process has ended. */
function residentMiB(pid = 0): number {
  try {
    return Math.round(Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024);
  } catch {
    return 0;
  }
}
