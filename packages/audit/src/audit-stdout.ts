import { write } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Appendable } from './audit-file.ts';

const writeTo = promisify(write);
const stdout = 1;
/** Pause while the pipe is full because its reader is slow. The device's write timeout ends the wait. */
const pauseMs = 5;

/** Opens the standard output, from which a log collector reads the entries. */
export const openStdout = async (): Promise<Appendable> => ({
  write: async (bytes) => {
    for (;;) {
      try {
        return (await writeTo(stdout, bytes)).bytesWritten;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
        await pause(pauseMs);
      }
    }
  },
  sync: async () => undefined,
  close: async () => undefined,
});
