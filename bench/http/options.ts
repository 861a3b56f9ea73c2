import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

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
  /** Length of the run before the first round of a row, which does not count. */
  readonly warmUpSeconds: number;
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

export const usage = `npm run bench -- [--ours URL --token T] [--peer URL --token T] [options]

  --ours URL, --peer URL   servers to measure; without --ours the command starts a node and ends it
  --token T                once per URL, that of --ours first
  --pid PID                once per URL, that of --ours first: also reads CPU time and memory of this process
  --rows A,B               names of rows, or their first parts; default: all rows
  --connections N          default 16
  --threads N              threads of the load generator; default: half of the cores, at most 4
  --seconds N              length of one run; default 3
  --warm-up N              seconds of the run before the rounds, which does not count; default 3
  --rounds N               runs per row and server; default 3
  --requests N             ends a run after so many requests, even if its time is not over
  --list-keys N            keys in the mount that the row list lists; default 10000
  --nodes N                starts a cluster of N nodes; also measures requests through a standby; default 1
  --tls, --audit           the started nodes serve TLS, or have an audit file
  --out DIR                folder of the report; default bench/results`;

/** Reads the command line. @throws Error that names the wrong option */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ours: { type: 'string' },
      peer: { type: 'string' },
      token: { type: 'string', multiple: true, default: [] },
      pid: { type: 'string', multiple: true, default: [] },
      rows: { type: 'string', default: '' },
      connections: { type: 'string', default: '16' },
      threads: { type: 'string', default: String(Math.max(1, Math.min(4, availableParallelism() >> 1))) },
      seconds: { type: 'string', default: '3' },
      'warm-up': { type: 'string', default: '3' },
      rounds: { type: 'string', default: '3' },
      requests: { type: 'string' },
      'list-keys': { type: 'string', default: '10000' },
      nodes: { type: 'string', default: '1' },
      tls: { type: 'boolean', default: false },
      audit: { type: 'boolean', default: false },
      out: { type: 'string', default: join(import.meta.dirname, '../results') },
    },
  });
  const connections = wholeNumber('connections', values.connections);
  const nodes = wholeNumber('nodes', values.nodes);
  if (values.ours !== undefined && (values.tls || values.audit || nodes > 1))
    throw new Error('--nodes, --tls and --audit apply to nodes that this command starts; omit --ours');
  return {
    servers: givenServers(values),
    rows: values.rows.split(',').filter((name) => name !== ''),
    connections,
    threads: Math.min(connections, wholeNumber('threads', values.threads)),
    seconds: positive('seconds', values.seconds),
    warmUpSeconds: positive('warm-up', values['warm-up']),
    rounds: wholeNumber('rounds', values.rounds),
    requests: values.requests === undefined ? Number.POSITIVE_INFINITY : wholeNumber('requests', values.requests),
    listKeys: wholeNumber('list-keys', values['list-keys']),
    nodes,
    tls: values.tls,
    audit: values.audit,
    out: values.out,
  };
}

/** Pairs each URL with its token and its process, in the order of the command line with `--ours` first. */
function givenServers(values: {
  readonly ours?: string;
  readonly peer?: string;
  readonly token: readonly string[];
  readonly pid: readonly string[];
}): GivenServer[] {
  const urls = (['ours', 'peer'] as const).flatMap((name) => {
    const url = values[name];
    return url === undefined ? [] : [{ name, url: baseUrl(name, url) }];
  });
  if (values.token.length !== urls.length) throw new Error(`--token: ${values.token.length} given for ${urls.length} URLs`);
  if (values.pid.length > urls.length) throw new Error(`--pid: ${values.pid.length} given for ${urls.length} URLs`);
  return urls.map(({ name, url }, i) => {
    const pid = values.pid[i];
    return { name, url, token: values.token[i] ?? '', pids: pid === undefined ? [] : [wholeNumber('pid', pid)] };
  });
}

function baseUrl(option: string, text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new Error(`--${option}: ${text} is not an http(s) URL`);
  return new URL(text).origin;
}

function positive(option: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) throw new Error(`--${option}: ${text} is not a positive number`);
  return value;
}

function wholeNumber(option: string, text: string): number {
  const value = positive(option, text);
  if (!Number.isSafeInteger(value)) throw new Error(`--${option}: ${text} is not a whole number`);
  return value;
}
