// `npm run bench [-- --ours URL --token T] [--peer URL --token T]`: measures requests to one or two servers with Vault's API, and to a
// bare `node:http` server. Without `--ours` it starts a node. Prints the report, and writes it to bench/results. See docs/benchmarks.md.
import { randomBytes } from 'node:crypto';
import { loadavg } from 'node:os';
import { runCommand } from './command.ts';
import { ApiServer, valueAt } from './http/api-server.ts';
import { Generator } from './http/generator.ts';
import { type Options, parseOptions } from './http/options.ts';
import { startNodes } from './http/own-cluster.ts';
import { OwnProcesses } from './http/own-processes.ts';
import { type BenchRun, markdown } from './http/report.ts';
import { allRows, type Row, selectRows } from './http/rows.ts';
import type { Run } from './http/run.ts';
import { type Line, type RunResult, type SkippedLine, summarize } from './http/summary.ts';
import { machine, writeReport } from './report.ts';

await runCommand('bench/http.ts', (args) => main(parseOptions(args)));

async function main(options: Options): Promise<void> {
  const id = randomBytes(4).toString('hex');
  const names = { mount: `bench-${id}`, listMount: `bench-${id}-list`, listKeys: options.listKeys };
  const rows = selectRows(allRows(names), options.rows);
  const [date, [loadBefore = 0]] = [new Date().toISOString(), loadavg()];
  const own = new OwnProcesses();
  const generator = new Generator(options.threads);
  const servers: ApiServer[] = [];
  try {
    if (!options.servers.some(({ name }) => name === 'ours')) servers.push(...(await startNodes(own, options)));
    for (const server of options.servers) servers.push(new ApiServer(server));
    const versions = await Promise.all(servers.map(versionOf));
    const measured = [...servers, await own.startEcho()];
    const lines: (Line | SkippedLine)[] = [];
    for (const [i, row] of rows.entries()) {
      console.error(`${i + 1}/${rows.length} ${row.name}`);
      lines.push(...(await measureRow(row, measured, generator, options)));
    }
    const { connections, threads, seconds, rounds, requests, listKeys, nodes, tls, audit } = options;
    const limit = Number.isFinite(requests) ? { requests } : {};
    const run: BenchRun = {
      date,
      machine: machine(),
      loadBefore,
      loadAfter: loadavg()[0] ?? 0,
      settings: { connections, threads, seconds, rounds, ...limit, listKeys, nodes, tls, audit },
      servers: [...versions, { name: 'echo', version: 'bare node:http' }],
      lines,
    };
    writeReport(options.out, 'http', run, markdown(run));
  } finally {
    await generator.close();
    for (const server of servers) await server.close();
    await own.stop();
  }
}

/** Measures the servers one after the other. Each round reverses the order of the previous round. */
async function measureRow(
  row: Row,
  servers: readonly ApiServer[],
  generator: Generator,
  options: Options,
): Promise<(Line | SkippedLine)[]> {
  const skipped = new Map<ApiServer, string>();
  const runs = new Map<ApiServer, Run>();
  for (const server of servers) {
    try {
      // The echo server gets the same requests as the first server.
      const body = server.name === 'echo' ? [...runs.values()][0]?.body : await prepare(row, server);
      runs.set(server, runOf(row, server, body, options));
    } catch (error) {
      skipped.set(server, error instanceof Error ? error.message : String(error));
    }
  }
  const rounds = new Map<ApiServer, RunResult[]>();
  let count = 0;
  const measure = (run: Run, pids: readonly number[]) =>
    generator.run({ ...run, path: run.path.replace('{run}', String(count++)) }, pids);
  for (const [server, run] of runs) {
    await measure({ ...run, seconds: options.warmUp }, server.pids);
    rounds.set(server, []);
  }
  for (let round = 0; round < options.rounds; round++) {
    const inOrder = round % 2 === 0 ? [...runs] : [...runs].reverse();
    for (const [server, run] of inOrder) rounds.get(server)?.push(await measure(run, server.pids));
  }
  const peer = servers.find(({ name }) => name === 'peer');
  return servers.map((server) => {
    const reason = skipped.get(server);
    if (reason !== undefined) return { row: row.name, server: server.name, skipped: reason };
    const comparedTo = server.name === 'ours' && peer ? rounds.get(peer) : undefined;
    return summarize(row.name, server.name, rounds.get(server) ?? [], comparedTo);
  });
}

/** Creates the keys of a row and checks one response. Returns the request body. @throws Error if the server fails the request */
async function prepare(row: Row, server: ApiServer): Promise<string | undefined> {
  await row.prepare?.(server);
  const body = await row.body?.(server);
  const response = await server.call(row.method, row.path.replace('{run}', 'check').replace('{n}', '0'), body);
  if (row.check && !row.check(response)) throw new Error(`unexpected response ${JSON.stringify(response).slice(0, 200)}`);
  return body && JSON.stringify(body);
}

function runOf({ method, path, spread }: Row, server: ApiServer, body: string | undefined, options: Options): Run {
  const { url, token, authority } = server;
  const { connections, seconds, requests } = options;
  return { url, method, path, spread, token, authority, body, connections, seconds, requests };
}

async function versionOf(server: ApiServer): Promise<{ readonly name: string; readonly version: string }> {
  const health = await server.call('GET', 'sys/health?perfstandbyok=true');
  return { name: server.name, version: String(valueAt(health, 'version')) };
}
