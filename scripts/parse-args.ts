import { parseArgs as read } from 'node:util';

/** Returns the options and arguments of a script. Wrong ones end the process with one sentence and exit code 1. */
export const parseArgs: typeof read = (config) => {
  try {
    return read(config);
  } catch (error) {
    if (!String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS_')) throw error;
    console.error((error as Error).message);
    process.exit(1);
  }
};
