// Runs the conformance cases against a fresh server and compares the outcome with the list of cases for later releases.
// A listed case that passes is an error too, so the list only shrinks.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeBinary } from '../process/live-server.ts';

export type Suite = 'transit' | 'system';

interface Outcome {
  readonly id: string;
  readonly passed: boolean;
  readonly detail: string;
}

/** Output of the runners for one case: the transit suite has names, the system suite has ids. */
interface RunnerResult {
  readonly id?: string;
  readonly area: string;
  readonly name?: string;
  readonly ok?: boolean;
  readonly error?: string;
  readonly failure?: unknown;
  readonly skipped?: string;
}

const folder = import.meta.dirname;

/** Case id → reason why it is not passed yet. */
export function waiting(suite: Suite): ReadonlyMap<string, string> {
  const groups: unknown = JSON.parse(readFileSync(join(folder, 'waiting.json'), 'utf8'));
  const rows = new Map<string, string>();
  const bySuite = Reflect.get(Object(groups), suite) as Readonly<Record<string, readonly string[]>>;
  for (const [reason, ids] of Object.entries(bySuite)) for (const id of ids) rows.set(id, reason);
  return rows;
}

/** Plaintexts of the cases, long enough to be recognized in any output. */
export function plaintextsOf(suite: Suite): readonly string[] {
  const cases = join(folder, suite, 'cases');
  const texts = readdirSync(cases).map((name) => readFileSync(join(cases, name), 'utf8'));
  return [
    ...new Set(texts.flatMap((text) => [...text.matchAll(/\{\{b64:([^{}]{12,})\}\}/g)].map(([, plaintext = '']) => plaintext))),
  ];
}

/** Whether a case failed because a node on etcd, or etcd, was not scheduled for seconds. The node then answers like this. */
export const isStalled = ({ passed, detail }: Outcome): boolean => !passed && /\bgot (474|503|504)\b/.test(detail);

/** Returns the arguments that select these cases. */
export function selecting(suite: Suite, ids: readonly string[]): readonly string[] {
  const pattern = `^(${ids.map((id) => id.replace(/[^\w/ -]/g, '\\$&')).join('|')})$`;
  return ['--filter', suite === 'transit' ? pattern : `/${pattern}/`];
}

/** Runs every case of the suite (or those selected by the arguments) against the server at `url`, which audits to `auditFile`. */
export async function runSuite(
  suite: Suite,
  { url, token, auditFile, args = [] }: { url: string; token: string; auditFile: string; args?: readonly string[] },
): Promise<Outcome[]> {
  const strict = suite === 'transit' ? ['--strict'] : ['--header', 'X-Service-Token', '--audit-log', auditFile];
  const child = spawn(
    nodeBinary,
    [join(folder, suite, 'run.mjs'), '--url', url, '--token', token, '--json', '--timeout', '120000', ...strict, ...args],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  if (code !== 0 && code !== 1) throw new Error(`the ${suite} runner ended with ${code}: ${stderr}`);
  const results: unknown = Reflect.get(Object(JSON.parse(stdout)), 'results');
  return (results as readonly RunnerResult[])
    .filter(({ skipped }) => skipped === undefined)
    .map(({ id, area, name, ok, error, failure }) => ({
      id: id ?? `${area}/${name}`,
      passed: ok === true,
      detail: error ?? JSON.stringify(failure ?? null),
    }));
}
