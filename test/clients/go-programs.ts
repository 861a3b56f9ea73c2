// Builds the Go programs in ./go and the command sops, in the versions that go.mod pins. It builds each once for all test files.
// It does so without optimization, because a cold build takes longer than the programs run.
import { join } from 'node:path';
import type { Context } from 'mocha';
import { root } from '../process/live-server.ts';
import { type Ended, type RunOptions, run } from './run.ts';

const module = join(import.meta.dirname, 'go');
const programs = join(root, 'node_modules/.cache/transitd-clients');

/** The package that `go build` builds for each program. */
const sources = {
  'vault-api': ['./api'],
  'openbao-api': ['-tags=openbao', './api'],
  'kms-wrapping': ['./kms-wrapping'],
  hashivault: ['./hashivault'],
  sops: ['github.com/getsops/sops/v3/cmd/sops'],
} as const;
export type Program = keyof typeof sources;

/** Time-out of a first build with its downloads, on a slow machine. */
export const buildMs = 900_000;

/** Flags of every build. They are the same for all programs, so that one build can use what another has compiled. */
export const fast = ['-buildvcs=false', '-gcflags=all=-N -l', '-ldflags=-s -w'];
const inModule = { cwd: module, env: { CGO_ENABLED: '0' } };
const lastLine = ({ stderr }: Ended): string => stderr.trim().split('\n').at(-1) ?? '';

let toolchain: Promise<string | undefined> | undefined;

/** Returns the reason why nothing can be built here; undefined if Go and the sources of the clients are available. */
async function missing(): Promise<string | undefined> {
  const go = await run('go', ['version']);
  if (go.code !== 0) return 'there is no Go on this machine';
  const fetched = await run('go', ['list', '-deps', './...', ...sources.sops], inModule);
  if (fetched.code === 0) return undefined;
  const reason = `the Go modules cannot be downloaded: ${lastLine(fetched)}`;
  if (process.env['CI'] !== undefined) throw new Error(reason);
  return reason;
}

/** Returns the folder of the module, or skips the suite and prints the reason if Go or the modules are missing. */
export async function needGoModules(context: Context): Promise<string> {
  context.timeout(buildMs);
  toolchain ??= missing();
  const reason = await toolchain;
  if (reason !== undefined) {
    console.log(`      skipped: ${reason}`);
    context.skip();
  }
  return module;
}

/** Builds a program, or skips the suite and prints the reason. @throws if it does not compile */
export async function build(context: Context, program: Program): Promise<void> {
  await needGoModules(context);
  const built = await run('go', ['build', ...fast, '-o', join(programs, program), ...sources[program]], inModule);
  if (built.code !== 0) throw new Error(`${program} does not compile:\n${built.stderr}`);
}

/** Returns the file of a program that was built. */
export const programPath = (program: Program): string => join(programs, program);

export const runProgram = (program: Program, args: readonly string[], options: RunOptions): Promise<Ended> =>
  run(programPath(program), args, options);
