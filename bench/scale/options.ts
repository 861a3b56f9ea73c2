import { join } from 'node:path';
import { parseArgs } from 'node:util';

export interface Options {
  /** Numbers of nodes at which to measure, ascending; with Raft three of them are voters, the others learners. */
  readonly nodes: readonly number[];
  /** Client address of an etcd that holds the records; undefined: Raft. */
  readonly etcd: string | undefined;
  /** Requests per measured point. */
  readonly requests: number;
  /** How long the nodes are observed at rest. */
  readonly restSeconds: number;
  readonly out: string;
}

export const usage = `node bench/scale.ts [options]

  --nodes A,B     numbers of nodes, ascending; three of them are voters, the others learners; default 3,5,9,17,33
  --etcd URL      client address of an etcd that holds the records; default: Raft
  --requests N    requests per measured point; default 2000
  --rest N        seconds for which the nodes are observed at rest; default 10
  --out DIR       folder of the report; default bench/results`;

const voters = 3;

/** Reads the command line. @throws Error that names the wrong option */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      nodes: { type: 'string', default: '3,5,9,17,33' },
      etcd: { type: 'string' },
      requests: { type: 'string', default: '2000' },
      rest: { type: 'string', default: '10' },
      out: { type: 'string', default: join(import.meta.dirname, '../results') },
    },
  });
  const smallest = values.etcd === undefined ? voters : 2;
  const nodes = values.nodes.split(',').map(Number);
  if (!nodes.every((count, i) => Number.isSafeInteger(count) && count >= smallest && count > (nodes[i - 1] ?? -1)))
    throw new Error(`--nodes must be ascending integers from ${smallest}, with commas between them`);
  const positive = (name: 'requests' | 'rest'): number => {
    const value = Number(values[name]);
    if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} must be a positive integer`);
    return value;
  };
  if (values.etcd !== undefined && !URL.canParse(values.etcd)) throw new Error(`--etcd: ${values.etcd} is not a URL`);
  return {
    nodes,
    etcd: values.etcd,
    requests: positive('requests'),
    restSeconds: positive('rest'),
    out: values.out,
  };
}

/** True if the node with this number, counted from one, is a learner of a cluster with Raft. */
export const isLearner = (number: number): boolean => number > voters;
