import { join } from 'node:path';
import { parseArgs } from 'node:util';

export interface Options {
  /** Largest number of keys, of versions of one key and of tokens; the smaller sizes are in {@link sizesUpTo}. */
  readonly keys: number;
  readonly versions: number;
  readonly tokens: number;
  /** Requests per measured point. */
  readonly requests: number;
  /** Connections while keys, versions and tokens are created. */
  readonly connections: number;
  readonly out: string;
}

export const usage = `node bench/growth.ts [options]

  --keys N          largest number of keys; default 1000000
  --versions N      largest number of versions of one key; default 10000
  --tokens N        largest number of tokens; default 100000
  --requests N      requests per measured point; default 2000
  --connections N   connections while keys, versions and tokens are created; default 64
  --out DIR         folder of the report; default bench/results`;

/** Reads the command line. @throws Error that names the wrong option */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      keys: { type: 'string', default: '1000000' },
      versions: { type: 'string', default: '10000' },
      tokens: { type: 'string', default: '100000' },
      requests: { type: 'string', default: '2000' },
      connections: { type: 'string', default: '64' },
      out: { type: 'string', default: join(import.meta.dirname, '../results') },
    },
  });
  const count = (name: 'keys' | 'versions' | 'tokens' | 'requests' | 'connections'): number => {
    const value = Number(values[name]);
    if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} must be a positive integer`);
    return value;
  };
  return {
    keys: count('keys'),
    versions: count('versions'),
    tokens: count('tokens'),
    requests: count('requests'),
    connections: count('connections'),
    out: values.out,
  };
}

/** Returns the sizes below `largest`, and `largest` itself. */
export const sizesUpTo = (largest: number, sizes: readonly number[]): number[] => [
  ...sizes.filter((size) => size < largest),
  largest,
];
