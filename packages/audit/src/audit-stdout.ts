import { write } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Appendable } from './audit-file.ts';

const writeTo = promisify(write);
const stdout = 1;
/** How long a reader that is behind is left in peace; the sink itself gives up after its own time. */
const behindMs = 5;

/** The standard output, as somebody collects it. */
export const openStdout = async (): Promise<Appendable> => ({
  write: async (bytes) => {
    for (;;) {
      try {
        return (await writeTo(stdout, bytes)).bytesWritten;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
        await pause(behindMs);
      }
    }
  },
  sync: async () => undefined,
  close: async () => undefined,
});
