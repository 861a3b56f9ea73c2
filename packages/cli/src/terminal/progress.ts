import type { WriteStream } from 'node:tty';
import { escapeControls } from '@transitd/process';

/** Shows how far a long command is: one line that is overwritten, only on a terminal. */
export interface Progress {
  /** @param of - 0 if the end is not known */
  readonly show: (done: number, of: number, what: string) => void;
  /** Removes the line. */
  readonly end: () => void;
}

const [barWidth, intervalMs] = [24, 100];

/** @param stream - standard error, so that results can be redirected */
export function progressOn(
  stream: Pick<WriteStream, 'isTTY' | 'columns' | 'write'> = process.stderr,
  nowMs: () => number = () => performance.now(),
): Progress {
  if (stream.isTTY !== true) return { show: () => undefined, end: () => undefined };
  let lastMs = Number.NEGATIVE_INFINITY;
  let isShown = false;
  return {
    show: (done, of, what) => {
      const now = nowMs();
      if (now - lastMs < intervalMs && (done < of || of <= 0)) return;
      [lastMs, isShown] = [now, true];
      stream.write(`\r\u001b[K${progressLine(done, of, what).slice(0, Math.max((stream.columns || 80) - 1, 1))}`);
    },
    end: () => {
      if (isShown) stream.write('\r\u001b[K');
      isShown = false;
    },
  };
}

/** Returns a bar with a percentage, or the amount alone if the end is not known. */
export function progressLine(done: number, of: number, what: string): string {
  const name = escapeControls(what).replaceAll('\n', ' ');
  if (of <= 0) return `${done} ${name}`;
  const part = Math.min(done / of, 1);
  const filled = Math.floor(part * barWidth);
  return `[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}] ${String(Math.floor(part * 100)).padStart(3)} % ${name}`;
}
