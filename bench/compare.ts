// `node bench/compare.ts --with FOLDER`: processor time per request of this checkout, compared with another one and, to show the noise,
// with itself. Prints Markdown. See docs/benchmarks.md.
import { randomBytes } from 'node:crypto';
import { Option } from 'commander';
import { countOption, readOptions, runCommand, secondsOption } from './command.ts';
import type { ApiServer } from './http/api-server.ts';
import { Generator } from './http/generator.ts';
import { startNodes } from './http/own-cluster.ts';
import { OwnProcesses } from './http/own-processes.ts';
import { allRows, selectRows } from './http/rows.ts';
import { median, type Ratio, ratioOf } from './statistics.ts';

const options = [
  new Option('--with <folder>', 'another checkout with its dependencies installed').makeOptionMandatory(),
  new Option('--row <name>', 'a row of npm run bench').default('encrypt-32b'),
  countOption('--nodes <n>', 'compares clusters of so many nodes, through the active node').default(1),
  new Option('--audit', 'the nodes write audit entries').default(false),
  countOption('--connections <n>', 'connections').default(16),
  countOption('--rounds <n>', 'runs of each server, in turns; at least six').default(30),
  secondsOption('--seconds <n>', 'length of one run').default(1.5),
];

interface Comparison {
  /** The folder of the other checkout. */
  readonly with: string;
  readonly row: string;
  readonly nodes: number;
  readonly audit: boolean;
  readonly connections: number;
  readonly rounds: number;
  readonly seconds: number;
}

/** Processor time per request of each node of a cluster in µs, the active one first. */
type NodeTimes = readonly number[];

/** The nodes whose time is compared. */
interface Part {
  readonly name: string;
  readonly of: (times: NodeTimes) => number;
}

const sum = (times: NodeTimes): number => times.reduce((total, us) => total + us, 0);
const whole: Part = { name: 'processor time per request', of: sum };
const active: Part = { name: 'of the active node', of: ([us = Number.NaN]) => us };
const others: Part = { name: 'of each other node', of: ([, ...times]) => sum(times) / times.length };

await runCommand('bench/compare.ts', async (args) => {
  const comparison = readOptions<Comparison>('bench/compare.ts', options, args);
  if (comparison.rounds < 6) throw new Error('--rounds must be at least six, or there is no interval');
  await compare(comparison);
});

async function compare({ with: folder, row: name, nodes, audit, connections, rounds, seconds }: Comparison): Promise<void> {
  const own = new OwnProcesses();
  const generator = new Generator(1);
  const start = async (from?: string): Promise<ApiServer> => {
    const [server] = await startNodes(own, { nodes, tls: false, audit, from });
    if (server === undefined) throw new Error('no node was started');
    return server;
  };
  try {
    const [ours, other, again] = [await start(), await start(folder), await start()];
    const servers = [ours, other, again];
    const id = randomBytes(4).toString('hex');
    const [row] = selectRows(allRows({ mount: `bench-${id}`, listMount: `bench-${id}-list`, listKeys: 10 }), [name]);
    if (row === undefined) throw new Error(`there is no row ${name}`);
    const bodies = new Map<ApiServer, string | undefined>();
    for (const server of servers) {
      await row.prepare?.(server);
      const body = await row.body?.(server);
      bodies.set(server, body && JSON.stringify(body));
    }
    let count = 0;
    const cpuUs = async (server: ApiServer): Promise<NodeTimes> => {
      const { url, token, authority, pids } = server;
      const path = row.path.replace('{run}', String(count++));
      const { method, spread } = row;
      const run = {
        url,
        token,
        authority,
        method,
        path,
        spread,
        body: bodies.get(server),
        connections,
        seconds,
        requests: Infinity,
      };
      const { requests, failed, failure, nodeCpuUs } = await generator.run(run, pids);
      if (failed > 0 || nodeCpuUs.length === 0) throw new Error(`a run failed: ${failure}`);
      return nodeCpuUs.map((us) => us / requests);
    };
    for (const server of servers) for (let at = 0; at < 3; at++) await cpuUs(server); // until it is compiled
    const measured = new Map<ApiServer, NodeTimes[]>(servers.map((server) => [server, []]));
    for (let round = 0; round < rounds; round++) {
      for (const server of round % 2 === 0 ? servers : servers.toReversed()) measured.get(server)?.push(await cpuUs(server));
      console.error(`${round + 1}/${rounds}`);
    }
    const at = `${nodes === 1 ? '' : `${nodes} nodes, `}${audit ? 'audited, ' : ''}`;
    console.log(
      `Row \`${name}\`, ${at}${rounds} runs of ${seconds} s each, in turns; ${connections} connections; Node ${process.version}.`,
    );
    for (const part of nodes === 1 ? [whole] : [whole, active, others]) {
      const of = (server: ApiServer): number[] => (measured.get(server) ?? []).map(part.of);
      console.log(
        `\n| ${part.name}: ${microseconds(of(ours))}, other ${microseconds(of(other))} | median of the pairs | 95 % interval |`,
      );
      console.log('|---|---:|---|');
      console.log(line('this checkout / the other', ratioOf(of(ours), of(other))));
      console.log(line('this checkout again / the other', ratioOf(of(again), of(other))));
      console.log(line('this checkout / this checkout again (noise)', ratioOf(of(ours), of(again))));
    }
  } finally {
    await generator.close();
    await own.stop();
  }
}

function microseconds(times: readonly number[]): string {
  return `${Math.round(median(times))} µs`;
}

function line(name: string, { median, low, high }: Ratio): string {
  return `| ${name} | ${percent(median)} | ${percent(low)} to ${percent(high)} |`;
}

function percent(ratio: number): string {
  return `${ratio >= 1 ? '+' : '−'}${(Math.abs(ratio - 1) * 100).toFixed(2)} %`;
}
