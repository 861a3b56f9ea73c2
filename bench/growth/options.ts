import { countOption, outOption, readOptions } from '../command.ts';

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

const options = [
  countOption('--keys <n>', 'largest number of keys').default(1_000_000),
  countOption('--versions <n>', 'largest number of versions of one key').default(10_000),
  countOption('--tokens <n>', 'largest number of tokens').default(100_000),
  countOption('--requests <n>', 'requests per measured point').default(2000),
  countOption('--connections <n>', 'connections while keys, versions and tokens are created').default(64),
  outOption(),
];

/** Reads the command line. @throws CommanderError that names the wrong option */
export const parseOptions = (args: readonly string[]): Options => readOptions('bench/growth.ts', options, args);

/** Returns the sizes below `largest`, and `largest` itself. */
export const sizesUpTo = (largest: number, sizes: readonly number[]): number[] => [
  ...sizes.filter((size) => size < largest),
  largest,
];
