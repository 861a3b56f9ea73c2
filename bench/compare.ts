// `node bench/compare.ts --with FOLDER [--row encrypt-32b] [--rounds 30] [--seconds 1.5]`: processor time per request of this checkout,
// compared with another one (installed) and, to show the noise, with itself. Prints Markdown. See docs/benchmarks.md.
import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { runCommand } from './command.ts';
import { type Ratio, ratioOf } from './compare/ratio.ts';
import type { ApiServer } from './http/api-server.ts';
import { Generator } from './http/generator.ts';
import { OwnProcesses } from './http/own-processes.ts';
import { allRows, selectRows } from './http/rows.ts';

const usage = `node bench/compare.ts --with FOLDER [options]

  --with FOLDER   another checkout with its dependencies installed
  --row NAME      a row of npm run bench; default encrypt-32b
  --rounds N      runs of each server, in turns; default 30
  --seconds N     length of one run; default 1.5`;

const connections = 16;

await runCommand('bench/compare.ts', usage, async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      with: { type: 'string' },
      row: { type: 'string', default: 'encrypt-32b' },
      rounds: { type: 'string', default: '30' },
      seconds: { type: 'string', default: '1.5' },
    },
  });
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  if (values.with === undefined || !(rounds >= 6) || !(seconds > 0))
    throw new Error('--with FOLDER is needed, and at least six rounds of some time');
  await compare({ folder: values.with, row: values.row, rounds, seconds });
});

async function compare({ folder, row: name, rounds, seconds }: Comparison): Promise<void> {
  const own = new OwnProcesses();
  const generator = new Generator(1);
  try {
    const servers = [
      await own.startDevNode(own.newFolder(), { name: 'this checkout' }),
      await own.startDevNode(own.newFolder(), { name: 'the other checkout', from: folder }),
      await own.startDevNode(own.newFolder(), { name: 'this checkout again' }),
    ];
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
    const cpuUs = async (server: ApiServer): Promise<number> => {
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
      const result = await generator.run(run, pids);
      if (result.failed > 0 || result.serverCpuUs === undefined) throw new Error(`a run failed: ${result.failure}`);
      return result.serverCpuUs / result.requests;
    };
    for (const server of servers) for (let at = 0; at < 3; at++) await cpuUs(server); // until it is compiled
    const measured = new Map<ApiServer, number[]>(servers.map((server) => [server, []]));
    for (let round = 0; round < rounds; round++) {
      for (const server of round % 2 === 0 ? servers : servers.toReversed()) measured.get(server)?.push(await cpuUs(server));
      console.error(`${round + 1}/${rounds}`);
    }
    const [ours = [], other = [], again = []] = measured.values();
    console.log(
      `Row \`${name}\`, ${rounds} runs of ${seconds} s each, in turns; ${connections} connections; Node ${process.version}.\n`,
    );
    console.log('| processor time per request | median of the pairs | 95 % interval |\n|---|---:|---|');
    console.log(line('this checkout / the other', ratioOf(ours, other)));
    console.log(line('this checkout again / the other', ratioOf(again, other)));
    console.log(line('this checkout / this checkout again (noise)', ratioOf(ours, again)));
  } finally {
    await generator.close();
    await own.stop();
  }
}

interface Comparison {
  readonly folder: string;
  readonly row: string;
  readonly rounds: number;
  readonly seconds: number;
}

function line(name: string, { median, low, high }: Ratio): string {
  return `| ${name} | ${percent(median)} | ${percent(low)} to ${percent(high)} |`;
}

function percent(ratio: number): string {
  return `${ratio >= 1 ? '+' : '−'}${(Math.abs(ratio - 1) * 100).toFixed(2)} %`;
}
