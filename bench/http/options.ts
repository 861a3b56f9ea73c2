import { availableParallelism } from 'node:os';
import { Option } from 'commander';
import { countOption, listOption, outOption, readOptions, secondsOption } from '../command.ts';

/** A server that is already running. */
export interface GivenServer {
  readonly name: 'ours' | 'peer';
  readonly url: string;
  readonly token: string;
  /** The process on this machine whose CPU time and memory are read, if it is given. */
  readonly pids: readonly number[];
}

export interface Options {
  readonly servers: readonly GivenServer[];
  /** Names or first parts of names, such as `encrypt` for every row `encrypt-…`; empty means all rows. */
  readonly rows: readonly string[];
  readonly connections: number;
  /** Threads of the load generator. */
  readonly threads: number;
  readonly seconds: number;
  /** Length of the run before the first round of a row, which does not count, in seconds. */
  readonly warmUp: number;
  readonly rounds: number;
  /** Maximum number of requests in a run: the run ends when its time is over or when it has sent so many. */
  readonly requests: number;
  readonly listKeys: number;
  /** Nodes of the cluster that the benchmark starts. With more than one, requests through a standby are measured too. */
  readonly nodes: number;
  /** `tls` and `audit` apply to the nodes that the benchmark starts. */
  readonly tls: boolean;
  readonly audit: boolean;
  readonly out: string;
}

const options = [
  new Option('--ours <url>', 'server to measure; without it the command starts a node and ends it'),
  new Option('--peer <url>', 'another server to measure'),
  new Option('--token <tokens...>', 'once per URL, that of --ours first').default([], 'none'),
  new Option('--pid <pids...>', 'once per URL, that of --ours first: also reads CPU time and memory of this process').default(
    [],
    'none',
  ),
  listOption('--rows <names>', 'names of rows, or their first parts').default([], 'all rows'),
  countOption('--connections <n>', 'connections').default(16),
  countOption('--threads <n>', 'threads of the load generator').default(
    Math.max(1, Math.min(4, availableParallelism() >> 1)),
    'half of the cores, at most 4',
  ),
  secondsOption('--seconds <n>', 'length of one run').default(3),
  secondsOption('--warm-up <n>', 'length of the run before the rounds, which does not count').default(3),
  countOption('--rounds <n>', 'runs per row and server').default(3),
  countOption('--requests <n>', 'ends a run after so many requests, even if its time is not over').default(
    Number.POSITIVE_INFINITY,
    'no limit',
  ),
  countOption('--list-keys <n>', 'keys in the mount that the row list lists').default(10_000),
  countOption('--nodes <n>', 'starts a cluster of so many nodes; also measures requests through a standby').default(1),
  new Option('--tls', 'the started nodes serve TLS').default(false),
  new Option('--audit', 'the started nodes have an audit file').default(false),
  outOption(),
];

/** Reads the command line. @throws Error that names the wrong option */
export function parseOptions(args: readonly string[]): Options {
  const { ours, peer, token, pid, ...read } = readOptions<Omit<Options, 'servers'> & Given>('bench/http.ts', options, args);
  if (ours !== undefined && (read.tls || read.audit || read.nodes > 1))
    throw new Error('--nodes, --tls and --audit apply to nodes that this command starts; omit --ours');
  const servers = givenServers({ ours, peer, token, pid });
  return { ...read, servers, threads: Math.min(read.connections, read.threads) };
}

/** Where the given servers are, as it is on the command line. */
interface Given {
  readonly ours: string | undefined;
  readonly peer: string | undefined;
  readonly token: readonly string[];
  readonly pid: readonly string[];
}

/** Pairs each URL with its token and its process, in the order of the command line with `--ours` first. */
function givenServers(given: Given): GivenServer[] {
  const urls = (['ours', 'peer'] as const).flatMap((name) => {
    const url = given[name];
    return url === undefined ? [] : [{ name, url: baseUrl(name, url) }];
  });
  if (given.token.length !== urls.length) throw new Error(`--token: ${given.token.length} given for ${urls.length} URLs`);
  if (given.pid.length > urls.length) throw new Error(`--pid: ${given.pid.length} given for ${urls.length} URLs`);
  if (!given.pid.every((pid) => /^\d+$/.test(pid))) throw new Error('--pid must be the numbers of processes');
  return urls.map(({ name, url }, i) => {
    const pid = given.pid[i];
    return { name, url, token: given.token[i] ?? '', pids: pid === undefined ? [] : [Number(pid)] };
  });
}

function baseUrl(option: string, text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new Error(`--${option}: ${text} is not an http(s) URL`);
  return new URL(text).origin;
}
