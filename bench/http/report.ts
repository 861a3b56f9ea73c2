import type { Line, SkippedLine } from './summary.ts';

/** One run of the benchmark, as it is written in JSON. */
export interface BenchRun {
  /** Start, ISO 8601, UTC. */
  readonly date: string;
  readonly machine: string;
  /** Load averages over the last minute. */
  readonly loadBefore: number;
  readonly loadAfter: number;
  readonly settings: {
    readonly connections: number;
    readonly threads: number;
    readonly seconds: number;
    readonly rounds: number;
    /** Maximum number of requests in a run; absent without a limit. */
    readonly requests?: number;
    readonly listKeys: number;
    /** Nodes of the started cluster. */
    readonly nodes: number;
    readonly tls: boolean;
    readonly audit: boolean;
  };
  readonly servers: readonly { readonly name: string; readonly version: string }[];
  readonly lines: readonly (Line | SkippedLine)[];
}

const columns = [
  'row',
  'server',
  'requests/s',
  'slowest–fastest round',
  '÷ peer',
  'p50 ms',
  'p99 ms',
  'CPU µs/request',
  'memory MiB',
  'generator CPU µs/request',
  'generator busy',
  'failed',
];

/** A generator that is busy for more than this fraction of the time may be slower than the server. */
const busyMax = 0.9;

/** Returns the report in Markdown. */
export function markdown({ date, machine, loadBefore, loadAfter, settings, servers, lines }: BenchRun): string {
  const { connections, threads, seconds, rounds, requests, listKeys, nodes, tls, audit } = settings;
  const limit = requests === undefined ? '' : ` or ${requests} requests`;
  const cluster = nodes > 1 ? `, a started cluster of ${nodes} nodes` : '';
  const extras = `${cluster}${tls ? ', TLS' : ''}${audit ? ', audit file' : ''}`;
  return [
    '# HTTP benchmark',
    '',
    `- Date: ${date.slice(0, 16).replace('T', ' ')} UTC`,
    `- Machine: ${machine}`,
    `- Load average (1 min): before ${loadBefore.toFixed(1)}, after ${loadAfter.toFixed(1)}`,
    `- Servers: ${servers.map(({ name, version }) => `${name} (${version})`).join(', ')}`,
    `- ${connections} connections, ${threads} generator threads, ${rounds} rounds of ${seconds} s${limit}, ` +
      `${listKeys} listed keys${extras}`,
    '',
    tableLine(columns),
    tableLine(columns.map((_, i) => (i < 2 ? '---' : '---:'))),
    ...lines.map((line) => tableLine('skipped' in line ? skippedCells(line) : cells(line))),
    '',
    '`docs/benchmarks.md` explains the columns. `!` marks a generator that was busy most of the time: it may have limited the rate.',
  ].join('\n');
}

const tableLine = (values: readonly string[]): string => `| ${values.map(cell).join(' | ')} |`;

const cell = (text: string): string => text.replace(/[\s|]+/g, ' ');

function skippedCells({ row, server, skipped }: SkippedLine): string[] {
  return columns.map((_, i) => [row, server, `skipped: ${skipped}`][i] ?? '–');
}

function cells(line: Line): string[] {
  return [
    line.row,
    line.server,
    threeDigits(line.requestsPerSecond),
    `${threeDigits(line.slowestRound)}–${threeDigits(line.fastestRound)}`,
    threeDigits(line.toPeer),
    threeDigits(line.p50Ms),
    threeDigits(line.p99Ms),
    cpuCell(line),
    threeDigits(line.residentMebibytes),
    threeDigits(line.generatorCpuUsPerRequest),
    `${Math.round(100 * line.generatorBusy)} %${line.generatorBusy > busyMax ? ' !' : ''}`,
    line.failed === 0 ? '0' : `${line.failed} (${line.failure})`,
  ];
}

/** Returns the CPU time of all nodes together and, of a cluster, that of each node. */
function cpuCell({ cpuUsPerRequest, nodeCpuUsPerRequest }: Line): string {
  const sum = threeDigits(cpuUsPerRequest);
  return nodeCpuUsPerRequest.length > 1 ? `${sum}: ${nodeCpuUsPerRequest.map(threeDigits).join(' + ')}` : sum;
}

/** Rounds to three significant digits, but keeps all digits before the decimal point. Returns `–` for an unknown value. */
export function threeDigits(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '–';
  if (value >= 100) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(value >= 10 ? 1 : 2);
}
