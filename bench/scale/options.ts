import { Option } from 'commander';
import { countOption, listOption, outOption, readOptions } from '../command.ts';

export interface Options {
  /** Numbers of nodes at which to measure, ascending; with Raft three of them are voters, the others learners. */
  readonly nodes: readonly number[];
  /** Client address of an etcd that holds the records; undefined: Raft. */
  readonly etcd: string | undefined;
  /** Requests per measured point. */
  readonly requests: number;
  /** How long the nodes are observed at rest, in seconds. */
  readonly rest: number;
  readonly out: string;
}

const options = [
  listOption('--nodes <numbers>', 'numbers of nodes, ascending; three of them are voters, the others learners').default(
    ['3', '5', '9', '17', '33'],
    '3,5,9,17,33',
  ),
  new Option('--etcd <url>', 'client address of an etcd that holds the records, instead of Raft'),
  countOption('--requests <n>', 'requests per measured point').default(2000),
  countOption('--rest <n>', 'seconds for which the nodes are observed at rest').default(10),
  outOption(),
];

const voters = 3;

/** Reads the command line. @throws Error that names the wrong option */
export function parseOptions(args: readonly string[]): Options {
  const read = readOptions<Omit<Options, 'nodes'> & { readonly nodes: readonly string[] }>('bench/scale.ts', options, args);
  const smallest = read.etcd === undefined ? voters : 2;
  const nodes = read.nodes.map(Number);
  if (!nodes.every((count, i) => Number.isSafeInteger(count) && count >= smallest && count > (nodes[i - 1] ?? -1)))
    throw new Error(`--nodes must be ascending integers from ${smallest}, with commas between them`);
  if (read.etcd !== undefined && !URL.canParse(read.etcd)) throw new Error(`--etcd: ${read.etcd} is not a URL`);
  return { ...read, nodes };
}

/** True if the node with this number, counted from one, is a learner of a cluster with Raft. */
export const isLearner = (number: number): boolean => number > voters;
