import { median } from '../statistics.ts';

/** Measurements of one run of the load generator against one server. */
export interface RunResult {
  readonly requests: number;
  readonly failed: number;
  readonly failure: string | undefined;
  readonly elapsedMs: number;
  readonly p50Us: number | undefined;
  readonly p99Us: number | undefined;
  /** CPU time that the server used in the run; undefined if its process is not known. */
  readonly serverCpuUs: number | undefined;
  /** The same for each node, in the order of the processes; empty if they are not known. */
  readonly nodeCpuUs: readonly number[];
  /** Resident memory of the server at the end of the run. */
  readonly serverResidentBytes: number | undefined;
  readonly generatorCpuUs: number;
  /** Fraction of the time in which the busiest thread was not idle, 0 to 1. */
  readonly generatorBusy: number;
}

/** One line of the table. Values are medians of the rounds; `undefined` means not known. */
export interface Line {
  readonly row: string;
  readonly server: string;
  readonly requestsPerSecond: number;
  readonly slowestRound: number;
  readonly fastestRound: number;
  /** Median of the ratios of all rounds. A ratio is this server's rate divided by the peer's rate in the same round. */
  readonly toPeer: number | undefined;
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
  readonly cpuUsPerRequest: number | undefined;
  /** The same for each node. */
  readonly nodeCpuUsPerRequest: readonly number[];
  readonly residentMebibytes: number | undefined;
  readonly generatorCpuUsPerRequest: number;
  readonly generatorBusy: number;
  readonly failed: number;
  readonly failure: string | undefined;
}

/** A server that could not be measured in a row, because its first request failed. */
export interface SkippedLine {
  readonly row: string;
  readonly server: string;
  readonly skipped: string;
}

/** Summarizes the rounds of one server in one row. @param peer - rounds of the peer in the same order, if there is one */
export function summarize(row: string, server: string, rounds: readonly RunResult[], peer?: readonly RunResult[]): Line {
  const rates = rounds.map(rateOf);
  const perRequest = ({ requests }: RunResult, us: number | undefined) =>
    us === undefined ? undefined : us / Math.max(1, requests);
  const over = (value: (round: RunResult) => number | undefined): number | undefined => {
    const known = rounds.map(value).filter((each) => each !== undefined);
    return known.length === 0 ? undefined : median(known);
  };
  const known = (value: number | undefined): number => value ?? Number.NaN;
  const scaled = (value: number | undefined, by: number) => (value === undefined ? undefined : value / by);
  return {
    row,
    server,
    requestsPerSecond: median(rates),
    slowestRound: Math.min(...rates),
    fastestRound: Math.max(...rates),
    toPeer: peer && median(rates.map((rate, i) => rate / (peer[i] ? rateOf(peer[i]) : Number.NaN))),
    p50Ms: scaled(
      over((round) => round.p50Us),
      1000,
    ),
    p99Ms: scaled(
      over((round) => round.p99Us),
      1000,
    ),
    cpuUsPerRequest: over((round) => perRequest(round, round.serverCpuUs)),
    nodeCpuUsPerRequest: (rounds[0]?.nodeCpuUs ?? []).map((_, node) =>
      known(over((round) => perRequest(round, round.nodeCpuUs[node]))),
    ),
    residentMebibytes: scaled(rounds.at(-1)?.serverResidentBytes, 2 ** 20),
    generatorCpuUsPerRequest: known(over((round) => perRequest(round, round.generatorCpuUs))),
    generatorBusy: Math.max(...rounds.map((round) => round.generatorBusy)),
    failed: rounds.reduce((total, round) => total + round.failed, 0),
    failure: rounds.find((round) => round.failure !== undefined)?.failure,
  };
}

/** Returns the number of successful requests per second. */
const rateOf = ({ requests, failed, elapsedMs }: RunResult): number => (1000 * (requests - failed)) / elapsedMs;
