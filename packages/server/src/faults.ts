// Faults that end the process, and the exit code of each.
import type { Node } from '@transitd/node';
import { endProcess, exitCode, type Logger, reasonOf, StartError } from '@transitd/process';
import { HistoryConflict, LogDamage } from '@transitd/raft-core';
import { StorageDamaged, StorageFailed, StorageInUse, UnsupportedLevel } from '@transitd/storage-fsm';

/** Returns the handler of fatal errors, which ends the process. */
export function stopOnFault(log: Logger): (error: Error) => void {
  let failed = false;
  return (error) => {
    if (failed) return; // the log and the driver both report the same disk failure
    failed = true;
    const code = codeOf(error);
    if (error instanceof UnsupportedLevel || error instanceof HistoryConflict) log.fatal(error.message);
    else
      log.fatal(
        { reason: reasonOf(error) },
        code === exitCode.storage ? 'storage failed: the node stops and acknowledges nothing more' : 'broken invariant',
      );
    // Responses with "outcome unknown" were just passed to their sockets. This event-loop turn writes them; the next turn ends the process.
    setImmediate(() => endProcess(code));
  };
}

/**
 * Opens the node; a disk failure or damage is logged and returned as an exit code.
 * @throws StartError if another process uses the data directory, or this release does not support the feature level of its state
 */
export async function openOrExitCode(open: () => Promise<Node>, log: Logger): Promise<Node | number> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof StorageInUse || error instanceof UnsupportedLevel) throw new StartError(error.message);
    if (error instanceof Error && (isStorageError(error) || isFileError(error))) {
      log.fatal({ reason: reasonOf(error) }, 'the data directory cannot be used');
      return exitCode.storage;
    }
    throw error;
  }
}

/**
 * Returns the exit code of a run that ended with this error of its storage, for example of the last flush during a stop.
 * {@link stopOnFault} has logged the failure, and has not ended the process yet. Rethrows any other error.
 */
export function storageExitCode(error: unknown): number {
  if (error instanceof Error && isStorageError(error)) return exitCode.storage;
  throw error;
}

function codeOf(error: Error): number {
  if (error instanceof UnsupportedLevel) return exitCode.start;
  if (error instanceof HistoryConflict) return exitCode.storage; // an operator has to act before a restart
  return isStorageError(error) ? exitCode.storage : exitCode.invariant;
}

/** The system refuses a file or a folder, and would after a restart too. The error of a port has an address. */
const isFileError = (error: Error): boolean => 'code' in error && lastingRefusals.has(error.code) && !('address' in error);
const lastingRefusals: ReadonlySet<unknown> = new Set([
  'EROFS',
  'EIO',
  'EACCES',
  'EPERM',
  'ENOENT',
  'ENOTDIR',
  'EISDIR',
  'EEXIST',
]);

const isStorageError = (error: Error): boolean =>
  error instanceof StorageFailed || error instanceof StorageDamaged || error instanceof LogDamage;
