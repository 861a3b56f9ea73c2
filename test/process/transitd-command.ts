// Runs the real command in its own process, without the environment variables that the command reads.
import { spawn } from 'node:child_process';
import { expect } from 'chai';
import { entry, nodeBinary } from './live-server.ts';

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as JSON. */
  json<T = Record<string, unknown>>(): T;
}

export interface Circumstances {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** Runs `transitd` once. */
export async function run(args: readonly string[], { env = {}, input = '' }: Circumstances = {}): Promise<Ran> {
  const child = spawn(nodeBinary, [entry, ...args], { env: { PATH: process.env['PATH'], ...env } });
  child.stdin.on('error', () => undefined); // the process may end without reading its input
  child.stdin.end(input);
  const [stdout, stderr, code] = await Promise.all([
    textOf(child.stdout),
    textOf(child.stderr),
    new Promise<number | null>((resolve) => child.on('close', resolve)),
  ]);
  return { code, stdout, stderr, json: () => JSON.parse(stdout) };
}

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** Fails with the whole output unless the exit code is `code`. */
export function expectCode(ran: Ran, code: number, what = ''): Ran {
  expect(ran.code, `${what}\n${ran.stdout}\n${ran.stderr}`).to.equal(code);
  return ran;
}
