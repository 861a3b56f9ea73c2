import { exitCode, reasonOf } from '@transitd/process';
import { StorageDamaged, StorageFailed } from '@transitd/storage-fsm';
import type { Output } from './output.ts';

/**
 * Reports a failed disk or damaged data in one sentence, and returns the exit code of the command.
 * @param hint - follows the sentence
 * @throws any other error
 */
export function storageFault(error: unknown, output: Output, hint = ''): number {
  if (!(error instanceof StorageDamaged || error instanceof StorageFailed)) throw error;
  output.notice(`transitd: ${reasonOf(error)}${hint}`);
  return exitCode.storage;
}
