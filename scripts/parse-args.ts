import { readFileSync } from 'node:fs';
import { parseArgs as read } from 'node:util';

/**
 * Returns the options and arguments of a script. Wrong ones end the process with one sentence and exit code 1. `--help` prints the
 * comment at the head of the script.
 */
export const parseArgs: typeof read = (config) => {
  if (process.argv.includes('--help')) {
    const [head = ''] = /^(?:\/\/.*\n)+/.exec(readFileSync(process.argv[1] ?? '', 'utf8')) ?? [];
    console.log(head.replaceAll(/^\/\/ ?/gm, '').trimEnd());
    process.exit(0);
  }
  try {
    return read(config);
  } catch (error) {
    if (!String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS_')) throw error;
    console.error((error as Error).message);
    process.exit(1);
  }
};
