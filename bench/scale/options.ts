import { join } from 'node:path';
import { parseArgs } from 'node:util';

export interface Options {
  /** Numbers of nodes at which to measure, ascending; with Raft three of them are voters, the others learners. */
  readonly nodes: readonly number[];
  /** Client address of an etcd that holds the records; undefined: Raft. */
  readonly etcd: string | undefined;
  /** Numbers of learners with which a leader's consensus core is measured alone. */
  readonly learners: readonly number[];
  /** Numbers of keys at which a node on etcd is started, instead of the measurements of nodes. */
  readonly keys: readonly number[];
  /** Numbers of keys that are read into the copy of a node on etcd alone, instead of the measurements of nodes. */
  readonly copies: readonly number[];
  /** Requests per measured point. */
  readonly requests: number;
  /** How long the nodes are observed at rest. */
  readonly restSeconds: number;
  readonly out: string;
}

export const usage = `node bench/scale.ts [options]

  --nodes A,B     numbers of nodes, ascending; three of them are voters, the others learners; default 3,5,9,17,33
  --etcd URL      client address of an etcd that holds the records; default: Raft
  --learners A,B  numbers of learners with which a leader's consensus core is measured alone; default 0,30,100,300,1000
  --keys A,B      with --etcd: numbers of keys at which a node is started, instead of the measurements of nodes
  --copies A,B    numbers of keys that are read into the copy of a node on etcd alone, instead of the measurements of nodes
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
      learners: { type: 'string', default: '0,30,100,300,1000' },
      keys: { type: 'string' },
      copies: { type: 'string' },
      requests: { type: 'string', default: '2000' },
      rest: { type: 'string', default: '10' },
      out: { type: 'string', default: join(import.meta.dirname, '../results') },
    },
  });
  const smallest = values.etcd === undefined ? voters : 2;
  const ascending = (name: 'nodes' | 'learners' | 'keys' | 'copies', from: number): number[] => {
    if (values[name] === undefined) return [];
    const counts = values[name].split(',').map(Number);
    if (counts.every((count, i) => Number.isSafeInteger(count) && count >= from && count > (counts[i - 1] ?? -1))) return counts;
    throw new Error(`--${name} must be ascending integers from ${from}, with commas between them`);
  };
  const positive = (name: 'requests' | 'rest'): number => {
    const value = Number(values[name]);
    if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} must be a positive integer`);
    return value;
  };
  if (values.keys !== undefined && values.etcd === undefined) throw new Error('--keys needs --etcd');
  if (values.etcd !== undefined && !URL.canParse(values.etcd)) throw new Error(`--etcd: ${values.etcd} is not a URL`);
  return {
    nodes: ascending('nodes', smallest),
    learners: ascending('learners', 0),
    keys: ascending('keys', 1),
    copies: ascending('copies', 1),
    etcd: values.etcd,
    requests: positive('requests'),
    restSeconds: positive('rest'),
    out: values.out,
  };
}

/** True if the node with this number, counted from one, is a learner of a cluster with Raft. */
export const isLearner = (number: number): boolean => number > voters;
